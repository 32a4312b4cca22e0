package clidoc_test

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/tools/gen/clidoc"
)

type copyCmd struct {
	From  string `arg:"" help:"File to copy, a|b."`
	Level int    `short:"l" help:"Compression level." default:"3"`
	Force bool   `help:"Overwrite."`
}

// Help returns the examples.
func (copyCmd) Help() string { return "Examples:\n\n  tool copy a" }

// TestMarkdown compares the page of a small command line with the expected text.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	var c struct {
		Copy   copyCmd  `cmd:"" help:"Copy a file."`
		Secret struct{} `cmd:"" hidden:""`
	}
	parser, err := kong.New(&c, kong.Name("tool"))
	if err != nil {
		t.Fatal(err)
	}
	want := `
## tool copy

Copy a file.

    tool copy <from> [flags]

| argument | meaning |
|---|---|
| ` + "`<from>`" + ` | File to copy, a\|b. |

| flag | meaning |
|---|---|
| ` + "`-l, --level=3`" + ` | Compression level. |
| ` + "`--force`" + ` | Overwrite. |

Examples:

    tool copy a
`
	if diff := cmp.Diff(want, clidoc.Markdown(parser.Model)); diff != "" {
		t.Error(diff)
	}
}
