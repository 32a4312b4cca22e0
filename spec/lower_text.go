package spec

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/roll"
)

// A text is a graph being written. Its ops refer to the weights and states of single layers:
// the arrays that hold these are known only at the end.
type text struct {
	*ir.Graph
	results []string // names of what it yields
	layers  []roll.Layer
	hints   map[*ir.Value]string
}

func newText(name string, dims []*ir.Dim) *text {
	return &text{Graph: &ir.Graph{Name: name, Dims: dims, Body: &ir.Block{}}, hints: map[*ir.Value]string{}}
}

// add adds an op to the graph. Its results have names like the given ones, with %.
func (t *text) add(def *ir.OpDef, values []*ir.Value, a ir.Attrs, names []string) ([]*ir.Value, error) {
	args := make([]ir.Arg, len(values))
	for i, v := range values {
		args[i] = ir.A(v)
	}
	hints := make([]string, len(names))
	for i, n := range names {
		hints[i] = strings.TrimPrefix(n, "%")
	}
	var o *ir.Op
	var err error
	if len(hints) == 1 {
		o, err = ir.NewOpLike(def, args, a, hints[0])
	} else {
		o, err = ir.NewOp(def, args, a, hints...)
	}
	if err != nil {
		return nil, err
	}
	for _, v := range o.Results {
		t.hints[v] = v.Name
	}
	t.Body.Ops = append(t.Body.Ops, o)
	return o.Results, nil
}

// begin begins a layer, which end ends.
func (t *text) begin(layer int) {
	t.layers = append(t.layers, roll.Layer{Lo: len(t.Body.Ops), Index: layer})
}

func (t *text) end() { t.layers[len(t.layers)-1].Hi = len(t.Body.Ops) }

// finish makes loops of the layers. elements has the array, and the index in it, of each
// weight and state of a layer.
func (t *text) finish(elements map[*ir.Value]ir.Arg) error {
	for _, o := range t.Body.Ops {
		for i := range o.Args {
			if e, ok := elements[o.Args[i].Value]; ok {
				o.Args[i] = e
			}
		}
	}
	for i, v := range t.Body.Ops {
		for k, r := range v.Results { // unique until they are numbered
			r.Name = fmt.Sprintf("v%d_%d", i, k)
		}
	}
	if err := roll.Layers(t.Graph, t.layers); err != nil {
		return err
	}
	t.number(elements)
	return nil
}

// number gives the results of the graph their names, and numbers other values in the order
// of their definitions.
func (t *text) number(elements map[*ir.Value]ir.Arg) {
	n := numbering{t.hints, map[string]int{}, map[*ir.Value]bool{}}
	for _, v := range t.Inputs {
		n.used[v.Name]++
	}
	for _, e := range elements {
		if e.Kind == ir.State {
			n.used[e.Name] = 1
		}
	}
	for i, v := range t.Body.Yield {
		if v.Kind == ir.Result {
			v.Name, n.fixed[v] = t.results[i], true
			n.used[v.Name]++
		}
	}
	n.block(t.Body)
}

type numbering struct {
	hints map[*ir.Value]string
	used  map[string]int
	fixed map[*ir.Value]bool
}

func (n *numbering) block(b *ir.Block) {
	for _, o := range b.Ops {
		n.values(o.Results)
		if o.Body != nil {
			n.values(o.Body.Params)
			n.block(o.Body)
		}
	}
}

var numberBehind = regexp.MustCompile(`_[0-9]+$`)

func (n *numbering) values(list []*ir.Value) {
	for _, v := range list {
		if n.fixed[v] {
			continue
		}
		hint, ok := n.hints[v]
		if !ok { // a loop's
			hint = numberBehind.ReplaceAllString(v.Name, "")
		}
		v.Name = hint
		if n.used[hint]++; n.used[hint] > 1 {
			v.Name = fmt.Sprintf("%s_%d", hint, n.used[hint])
		}
	}
}
