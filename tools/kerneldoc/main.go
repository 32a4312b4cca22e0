// Kerneldoc writes docs/kernels.md from the kernel catalogue.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

//go:generate go run . -o ../../docs/kernels.md

func main() {
	out := flag.String("o", "docs/kernels.md", "file to write")
	flag.Parse()
	cat, err := templates.Load()
	if err == nil {
		err = os.WriteFile(*out, []byte(page(cat)), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kerneldoc:", err)
		os.Exit(1)
	}
}

const intro = `# Kernels of the CPU target

Generated from the headers of the templates in ` + "`templates/cpu`" + ` by ` + "`go generate ./tools/kerneldoc`" + `; do not edit. A
template is one implementation of one op for some types; each type and instruction set is one C translation unit with
one function. Kernels of one op that sum in the same order give the same bits, so a dispatch table may mix them freely.
`

// page describes every kernel and instruction set.
func page(cat *templates.Catalog) string {
	var b strings.Builder
	b.WriteString(intro)
	for _, k := range cat.Kernels() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| | |\n|---|---|\n", k.Name, k.Doc)
		row := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "| %s | %s |\n", name, value)
			}
		}
		row("op", k.Op)
		row("implementation", k.Impl)
		row("types", list(k.Types))
		row("order of summation", k.Sum)
		row("legal", k.When)
		if k.Tile > 0 {
			row("rows of a packed tile", fmt.Sprint(k.Tile))
		}
	}
	b.WriteString("\n## Instruction sets\n\nA binary holds the code of each; the first that the processor has is used, or the one that `--isa` names.\n\n" +
		"| name | architecture | needs | compiler flags |\n|---|---|---|---|\n")
	for _, s := range templates.ISAs() {
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", s.Name, or(s.Arch, "any"), or(strings.Join(s.Needs, " "), "nothing"), strings.Join(s.Flags, " "))
	}
	return b.String()
}

func list(types []tensor.DType) string {
	var names []string
	for _, t := range types {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
