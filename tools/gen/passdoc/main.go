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

Generated from the pipeline in ` + "`passes`" + ` by ` + "`go generate ./tools/gen/passdoc`" + `; do not edit. The passes run in this order.
After each pass, the compiler removes unused ops and runs the verifier.

- ` + "`iflowc ir SPEC --all DIR`" + ` writes the module after each pass; ` + "`--diff`" + ` prints the changes of each pass.
- ` + "`iflowc opt FILE.ir --passes a,b`" + ` runs single passes on IR text.

A pass does not change the values that a module computes, except within the tolerance that its section states. Tests compare
the values before and after each pass in the interpreter.
`

// page describes a list of passes.
func page(list []*passes.Pass) string {
	var b strings.Builder
	b.WriteString(intro)
	for i, p := range list {
		fmt.Fprintf(&b, "\n## %d. %s\n\n%s\n", i+1, p.Name, p.Doc)
		if p.Tolerance > 0 {
			fmt.Fprintf(&b, "\nTolerance: values may change by a relative error of at most %g.\n", p.Tolerance)
		}
	}
	return b.String()
}
