package ir

import "fmt"

// Repeat runs its body once per index lo ≤ i < hi. Its arguments start the
// carried values (Body.Params); each iteration's yields are the next one's
// carried values, and the last one's are the results.
var Repeat = &OpDef{
	Name:   "repeat",
	Doc:    "Runs its body once per index lo ≤ i < hi; the yields of one iteration are the carried values of the next, those of the last are the results. Written `repeat LO..HI (%x = %x0, …) { … }`.",
	Params: []ParamDef{{Name: "init", Variadic: true, Doc: "first values of the carried values"}},
	Attrs: []AttrDef{
		{Name: "lo", Kind: IntAttr, Required: true, Doc: "first index"},
		{Name: "hi", Kind: IntAttr, Required: true, Doc: "one past the last index"},
	},
	Traits: HasBody,
	Infer:  inferRepeat,
}

// Fuse groups row ops in front, one root, and ops behind it that are local to
// the root's output tile into one kernel. Its meaning is that of its ops.
var Fuse = &OpDef{
	Name:   "fuse",
	Doc:    "Groups ops into one kernel: row ops, one root, ops local to the root's output tile. Its meaning is that of its ops. Written `fuse { … }`.",
	Traits: HasBody,
	Infer:  inferYields,
}

// Par is a tensor group: each value in it is one tensor per rank.
var Par = &OpDef{
	Name:   "par",
	Doc:    "A tensor group: every value inside is one tensor per rank; array weights and states take the rank as one more index; collectives exchange. Its results are rank 0's yields. Written `par N { … }`.",
	Attrs:  []AttrDef{{Name: "ranks", Kind: IntAttr, Required: true, Doc: "how many ranks"}},
	Traits: HasBody,
	Infer:  inferYields,
}

// Structure lists the ops with bodies, which every op table holds.
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
		return nil, fmt.Errorf("%d first values, %d carried values and %d yields; the numbers must agree", len(o.Args), len(b.Params), len(b.Yield))
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

// Lookup finds an op by name, or gives nil.
func (s OpSet) Lookup(name string) *OpDef {
	for _, d := range s {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Names lists the ops' names in table order.
func (s OpSet) Names() []string {
	var names []string
	for _, d := range s {
		names = append(names, d.Name)
	}
	return names
}
