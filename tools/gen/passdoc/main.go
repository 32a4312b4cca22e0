// Passdoc writes docs/passes.md from the pipeline.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/iflowc/iflowc/passes"
)

//go:generate go run . -o ../../../docs/passes.md

func main() {
	out := flag.String("o", "docs/passes.md", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(page(passes.Pipeline)), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "passdoc:", err)
		os.Exit(1)
	}
}

const intro = `# Passes

Generated from the pipeline in ` + "`passes`" + ` by ` + "`go generate ./tools/gen/passdoc`" + `; do not edit. The passes run in this order; after
each, ops whose results nobody reads are removed and the verifier runs. ` + "`iflowc ir SPEC --all DIR`" + ` writes the module after
each of them, ` + "`--diff`" + ` prints what each changed, ` + "`iflowc opt FILE.ir --passes a,b`" + ` runs any of them on text.

A pass keeps the meaning of a module: the interpreter gives the same values before and after it, up to the tolerance
given here.
`

// page describes a list of passes.
func page(list []*passes.Pass) string {
	var b strings.Builder
	b.WriteString(intro)
	for i, p := range list {
		fmt.Fprintf(&b, "\n## %d. %s\n\n%s\n", i+1, p.Name, p.Doc)
		if p.Tolerance > 0 {
			fmt.Fprintf(&b, "\nIt may change values by a share of %g: this is the one place where precision is given up on request.\n", p.Tolerance)
		}
	}
	return b.String()
}
