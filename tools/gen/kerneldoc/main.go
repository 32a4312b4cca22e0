// Command kerneldoc writes docs/kernels.md from the kernel catalog.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

//go:generate go run . -o ../../../docs/kernels.md

func main() {
	out := flag.String("o", "docs/kernels.md", "file to write")
	flag.Parse()
	cat, err := templates.Load()
	if err == nil {
		var gpu *templates.CUDACatalog
		if gpu, err = templates.LoadCUDA(); err == nil {
			err = os.WriteFile(*out, []byte(page(cat, gpu)), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kerneldoc:", err)
		os.Exit(1)
	}
}

const intro = `# Kernels

Generated from the headers of the templates in ` + "`templates/cpu` and `templates/cuda`" + ` by ` + "`go generate ./tools/gen/kerneldoc`" + `;
do not edit. A template is one implementation of one op for some types. On the CPU each type and instruction set is one C
translation unit with one function; kernels of one op that sum in the same order give the same bits, so a dispatch table may
mix them freely. [Those of the CUDA target](#the-cuda-target) come last.
`

const cudaIntro = `
## The CUDA target

A template is the __global__ function of a region, with holes for the ops in front of its root and behind it
([cuda.md](cuda.md)). What its machine code must show, TestCUDAGates looks for: instructions, at least so many, and of registers
of a thread at most so many (REG); and so many blocks fit on a multiprocessor of every GPU (BLOCKS). None may spill.
`

// page returns the text of the page, which describes every kernel and instruction set.
func page(cat *templates.Catalog, gpu *templates.CUDACatalog) string {
	var b strings.Builder
	b.WriteString(intro)
	for _, k := range cat.Kernels() {
		row := section(&b, "##", k.Name, k.Doc)
		row("op", k.Op)
		row("implementation", k.Impl)
		row("types", list(k.Types))
		row("order of summation", k.Sum)
		row("legal", k.When)
		if k.Tile > 0 {
			row("rows of a packed tile", fmt.Sprint(k.Tile))
		}
	}
	b.WriteString("\n## Instruction sets\n\nA binary contains the code of each. It uses the first one that the CPU supports, or the one that `--isa` names.\n\n" +
		"| name | architecture | needs | compiler flags |\n|---|---|---|---|\n")
	for _, s := range templates.ISAs() {
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", s.Name, or(s.Arch, "any"), or(strings.Join(s.Needs, " "), "nothing"), strings.Join(s.Flags, " "))
	}
	b.WriteString(cudaIntro)
	for _, k := range gpu.Kernels() {
		row := section(&b, "###", k.Name, k.Doc)
		row("op", k.Op)
		row("implementation", k.Impl)
		row("types", list(k.Types))
		row("order of summation", k.Sum)
		row("rows of a block", strings.Trim(fmt.Sprint(k.Rows), "[]"))
		var promises []string
		for _, what := range slices.Sorted(maps.Keys(k.Promises)) {
			promises = append(promises, fmt.Sprintf("`%s` %d", what, k.Promises[what]))
		}
		for _, what := range slices.Sorted(maps.Keys(k.Trellis)) {
			promises = append(promises, fmt.Sprintf("`%s` %d for trellis-coded weights", what, k.Trellis[what]))
		}
		row("promises", strings.Join(promises, ", "))
	}
	return b.String()
}

// section starts a kernel's section and returns a function that writes a row of its table.
func section(b *strings.Builder, level, name, doc string) func(name, value string) {
	fmt.Fprintf(b, "\n%s %s\n\n%s\n\n| | |\n|---|---|\n", level, name, doc)
	return func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "| %s | %s |\n", name, value)
		}
	}
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
