package ir

import "fmt"

// Repeat runs its body once per index lo ≤ i < hi. Its arguments are the initial
// carried values (Body.Params). The yields of an iteration are the carried values of
// the next one; the yields of the last iteration are the results.
var Repeat = &OpDef{
	Name:   "repeat",
	Doc:    "Runs its body once per index lo ≤ i < hi. The yields of an iteration are the carried values of the next one. The yields of the last iteration are the results. Written `repeat LO..HI (%x = %x0, …) { … }`.",
	Params: []ParamDef{{Name: "init", Variadic: true, Doc: "initial values of the carried values"}},
	Attrs: []AttrDef{
		{Name: "lo", Kind: IntAttr, Required: true, Doc: "first index"},
		{Name: "hi", Kind: IntAttr, Required: true, Doc: "one past the last index"},
	},
	Traits: HasBody,
	Infer:  inferRepeat,
}

// Fuse groups ops into one kernel: row ops, then one root, then ops that read only
// the root's output tile. Its semantics are those of its ops.
var Fuse = &OpDef{
	Name:   "fuse",
	Doc:    "Groups ops into one kernel: row ops, then one root, then ops that read only the root's output tile. Its semantics are those of its ops. Written `fuse { … }`.",
	Traits: HasBody,
	Infer:  inferYields,
}

// Par is a tensor-parallel group: each value in it is one tensor per rank.
var Par = &OpDef{
	Name:   "par",
	Doc:    "A tensor-parallel group: every value inside is one tensor per rank. Array weights and states have the rank as an additional index. Collectives communicate between ranks. Its results are the yields of rank 0. Written `par N { … }`.",
	Attrs:  []AttrDef{{Name: "ranks", Kind: IntAttr, Required: true, Doc: "number of ranks"}},
	Traits: HasBody,
	Infer:  inferYields,
}

// Structure lists the ops with bodies, which every op table contains.
var Structure = OpSet{Repeat, Fuse, Par}

func inferYields(o *Op) ([]Type, error) {
	var out []Type
	for _, y := range o.Body.Yield {
		out = append(out, y.Type)
	}
	return out, nil
}

func inferRepeat(o *Op) ([]Type, error) {
	if lo, hi := o.Int("lo"), o.Int("hi"); lo < 0 || hi <= lo {
		return nil, fmt.Errorf("range %d..%d is empty or negative", lo, hi)
	}
	b := o.Body
	if len(b.Params) != len(o.Args) || len(b.Yield) != len(b.Params) {
		return nil, fmt.Errorf("%d initial values, %d carried values and %d yields; the numbers must be equal", len(o.Args), len(b.Params), len(b.Yield))
	}
	for i, p := range b.Params {
		if !p.Type.Equal(o.Args[i].Type) {
			return nil, fmt.Errorf("%s is %s but starts from %s, which is %s", p, p.Type, o.Args[i], o.Args[i].Type)
		}
		if !p.Type.Equal(b.Yield[i].Type) {
			return nil, fmt.Errorf("%s is %s but yield %d is %s, which is %s", p, p.Type, i+1, b.Yield[i], b.Yield[i].Type)
		}
	}
	return inferYields(o)
}

// An OpSet is a table of ops.
type OpSet []*OpDef

// Lookup returns the op of the given name, or nil.
func (s OpSet) Lookup(name string) *OpDef {
	for _, d := range s {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Names returns the ops' names in table order.
func (s OpSet) Names() []string {
	var names []string
	for _, d := range s {
		names = append(names, d.Name)
	}
	return names
}
