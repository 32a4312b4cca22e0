//go:build unix

package cli

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/tools/gen/clidoc"
)

//go:generate go test . -run ^TestManual$ -update-manual

var updateManual = flag.Bool("update-manual", false, "rewrite docs/reference/binary.md; read the difference")

// TestManual compares docs/reference/binary.md with the command line of binaries.
func TestManual(t *testing.T) {
	t.Parallel()
	parser, err := Grammar()
	if err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/reference/binary.md"
	want := "# Per-model binary\n\nGenerated from the command line by `go generate ./runtime/cli`; do not edit.\n\n" +
		"`iflowc compile` makes a binary `BIN` with these subcommands. A binary offers those that its model can run.\n" + clidoc.Markdown(parser.Model)
	if *updateManual {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/binary.md is stale; run go generate ./runtime/cli:\n%s", diff)
	}
}
