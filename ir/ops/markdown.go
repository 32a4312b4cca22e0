package ops

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir"
)

var traitWords = []struct {
	trait ir.Trait
	word  string
}{
	{ir.Elementwise, "elementwise"}, {ir.Commutative, "commutative"}, {ir.RowWise, "row by row"}, {ir.HasBody, "region"},
	{ir.Writes, "writes a state"}, {ir.Reads, "reads a state"}, {ir.Root, "may be the root of a fuse region"},
	{ir.TileLocal, "may follow a root"}, {ir.PerHead, "may follow a root if heads > 1"},
	{ir.Collective, "collective"}, {ir.AcrossRows, "only in graphs that write a source state"},
}

// Markdown returns the text of docs/ops.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Ops\n\nGenerated from the table in `ir/ops` by `go generate ./ir/ops`; do not edit. Values between ops are real numbers\n" +
		"(`f32`): `[T, D]` means any number of rows. `[x]` is an optional argument, `x…` one or more.\n" +
		"An op that works row by row computes each row of its result from the same row of its arguments only.\n")
	for _, d := range Table {
		b.WriteString("\n## " + d.Name + "\n\n")
		var params []string
		for _, p := range d.Params {
			params = append(params, paramText(p))
		}
		if params != nil {
			fmt.Fprintf(&b, "`%s %s`", d.Name, strings.Join(params, ", "))
			var words []string
			for _, t := range traitWords {
				if d.Is(t.trait) && !(t.trait == ir.Writes && d.Is(ir.Collective)) {
					words = append(words, t.word)
				}
			}
			if words != nil {
				b.WriteString(" — " + strings.Join(words, ", "))
			}
			b.WriteString("\n\n")
		}
		b.WriteString(d.Doc + "\n")
		tableText(&b, d)
	}
	return b.String()
}

func paramText(p ir.ParamDef) string {
	name := "%" + p.Name
	if len(p.Kinds) == 1 && p.Kinds[0] == ir.Weight {
		name = "@" + p.Name
	}
	if p.Variadic {
		name += "…"
	}
	if p.Optional {
		name = "[" + name + "]"
	}
	return name
}

func tableText(b *strings.Builder, d *ir.OpDef) {
	if len(d.Params)+len(d.Attrs) > 0 {
		b.WriteString("\n| name | kind | meaning |\n|---|---|---|\n")
	}
	for _, p := range d.Params {
		fmt.Fprintf(b, "| `%s` | argument | %s |\n", paramText(p), p.Doc)
	}
	for _, a := range d.Attrs {
		kind := a.Kind.String()
		if a.Words != nil {
			kind = strings.Join(a.Words, " or ")
		}
		if a.Required {
			kind += ", required"
		} else if a.Default != nil {
			kind += fmt.Sprintf(", default %v", a.Default)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", a.Name, kind, a.Doc)
	}
	if d.Expr != "" {
		fmt.Fprintf(b, "\nC: `%s`\n", d.Expr)
	}
}
