package ir

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// anyValue lists the kinds that a parameter without declared kinds accepts.
var anyValue = []Kind{Result, Carry, Input}

func (o *Op) checkArgs() error {
	ps := o.Def.Params
	least, most := 0, len(ps)
	for _, p := range ps {
		switch {
		case p.Variadic:
			most = math.MaxInt
			if !p.Optional && o.Def != Repeat {
				least++
			}
		case !p.Optional:
			least++
		}
	}
	if n := len(o.Args); n < least || n > most {
		return fmt.Errorf("%d arguments, expected %s", n, o.Def.signature())
	}
	for i, a := range o.Args {
		p := o.Def.Param(i)
		kinds := p.Kinds
		if kinds == nil {
			kinds = anyValue
		}
		if !slices.Contains(kinds, a.Kind) {
			return fmt.Errorf("argument %s is a %s, expected %s for %s", a, a.Kind, kindNames(kinds), p.Name)
		}
		if a.Index != nil && a.Kind != Weight && a.Kind != State {
			return fmt.Errorf("argument %s: only weights and states take an index", a)
		}
	}
	return nil
}

// Param returns the declaration of argument i, or nil if the op has fewer
// parameters. The last parameter of a variadic op describes all further arguments.
func (d *OpDef) Param(i int) *ParamDef {
	if n := len(d.Params); i >= n && n > 0 && d.Params[n-1].Variadic {
		i = n - 1
	}
	if i >= len(d.Params) {
		return nil
	}
	return &d.Params[i]
}

// IndexCount returns the number of indices of argument i, written or implied by the
// enclosing repeat and par regions. It is the number of indices of the value, less
// one if the op reads every element of the last index (ParamDef.Each).
func (o *Op) IndexCount(i int) int {
	n := len(o.Args[i].Count)
	if p := o.Def.Param(i); p != nil && p.Each && n > 0 {
		n--
	}
	return n
}

func kindNames(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		if s := "a " + k.String(); !slices.Contains(names, s) && k != Input && k != Carry {
			names = append(names, s)
		}
	}
	return strings.Join(names, " or ")
}

// signature returns the parameters in the notation of docs/ops.md: x, w, [b], more….
func (d *OpDef) signature() string {
	var parts []string
	for _, p := range d.Params {
		s := p.Name
		if p.Variadic {
			s += "…"
		}
		if p.Optional {
			s = "[" + s + "]"
		}
		parts = append(parts, s)
	}
	if parts == nil {
		return "none"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func (o *Op) checkAttrs() error {
	seen := map[string]bool{}
	for _, a := range o.Attrs {
		d := o.Def.Attr(a.Name)
		if d == nil {
			return fmt.Errorf("unknown attribute %s%s", a.Name, spelling.DidYouMean(a.Name, o.Def.attrNames()))
		}
		if seen[a.Name] {
			return fmt.Errorf("duplicate attribute %s", a.Name)
		}
		seen[a.Name] = true
		if err := d.check(a.Val); err != nil {
			return fmt.Errorf("attribute %s: %w", a.Name, err)
		}
	}
	for _, d := range o.Def.Attrs {
		if d.Required && !seen[d.Name] {
			return fmt.Errorf("attribute %s is missing", d.Name)
		}
	}
	return nil
}

func (d *AttrDef) check(val any) error {
	ok := false
	switch v := val.(type) {
	case int:
		ok = d.Kind == IntAttr || d.Kind == PerLayerInt
	case float64:
		ok = (d.Kind == FloatAttr || d.Kind == PerLayerFloat) && !math.IsNaN(v)
	case bool:
		ok = d.Kind == BoolAttr
	case string:
		ok = d.Kind == WordAttr && slices.Contains(d.Words, v)
		if d.Kind == WordAttr && !ok {
			return fmt.Errorf("unknown word %s, expected one of %s", v, strings.Join(d.Words, ", "))
		}
	case tensor.DType:
		ok = d.Kind == DTypeAttr && v != tensor.Invalid
	case []int:
		ok = d.Kind == IntsAttr || d.Kind == PerLayerInt && len(v) > 0
	case []float64:
		ok = (d.Kind == FloatsAttr || d.Kind == PerLayerFloat && len(v) > 0) && !slices.ContainsFunc(v, math.IsNaN)
	}
	if !ok {
		return fmt.Errorf("%v is not %s", val, article(d.Kind.String()))
	}
	return nil
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
