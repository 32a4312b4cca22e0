package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// Partition places layers on devices and splits them over tensor groups.
var Partition = &Pass{
	Name:      "partition",
	Doc:       "Places layers on the groups of the device string (a note), and splits the layers of a group with several members: query, key, value, gate and up projections by rows, so that each member has whole heads and its share of the hidden columns; output and down projections by columns, each followed by one all_reduce before the residual (Megatron-LM, §3; Inferflow report, Table 4). States hold each member's heads.",
	Tolerance: 1e-9, // a sum in parts
	Run:       partition,
}

func partition(env *Env, m *ir.Module) error {
	if len(env.Devices) == 0 || len(env.Devices) == 1 && len(env.Devices[0]) == 1 {
		return nil
	}
	members := len(env.Devices[0])
	for _, g := range env.Devices {
		if len(g) != members {
			return fmt.Errorf("device groups of %d and %d members: groups of one size are needed, because the layers of all groups are one loop", members, len(g))
		}
	}
	for _, g := range m.Graphs {
		for _, rep := range g.FindOps("repeat") {
			if len(env.Devices) > 1 {
				note, err := placement(env.Devices, rep.Int("lo"), rep.Int("hi"))
				if err != nil {
					return err
				}
				rep.Notes.Set(note)
			}
			if members > 1 {
				s := &sharder{env: env, mod: m, n: members, names: ir.NewNames(m), uses: ir.Uses(g),
					sharded: map[*ir.Value]bool{}, partial: map[*ir.Value]bool{}, weights: map[string]*ir.Value{}}
				if err := s.layer(rep); err != nil {
					return fmt.Errorf("splitting a layer over %d devices: %w", members, err)
				}
			}
		}
	}
	return nil
}

// placement gives each group its share of the layers, in order; without
// shares by ceiling division, as Inferflow does.
func placement(groups [][]Device, lo, hi int) (ir.Note, error) {
	if len(groups) > hi-lo {
		return ir.Note{}, fmt.Errorf("%d device groups for %d layers", len(groups), hi-lo)
	}
	total, even := 0, true
	for _, g := range groups {
		s := max(g[0].Share, 1)
		even = even && s == max(groups[0][0].Share, 1)
		total += s
	}
	note := ir.Note{Name: "on"}
	each := (hi - lo + len(groups) - 1) / len(groups)
	at, share := lo, 0
	for i, g := range groups {
		var names []string
		for _, d := range g {
			names = append(names, d.Name)
		}
		a := ir.NoteArg{Val: strings.Join(names, "&")}
		if i > 0 {
			a.Of, a.From = "layer", at
		}
		note.Args = append(note.Args, a)
		share += max(g[0].Share, 1)
		if even {
			at = min(lo+(i+1)*each, hi-(len(groups)-1-i))
		} else {
			at = lo + (hi-lo)*share/total
		}
	}
	return note, nil
}

// A sharder splits the body of one repeat. A value in it is whole on every
// member, sharded by columns, or a partial sum.
type sharder struct {
	env     *Env
	mod     *ir.Module
	n       int
	names   *ir.Names
	uses    map[*ir.Value][]ir.Use
	sharded map[*ir.Value]bool
	partial map[*ir.Value]bool
	weights map[string]*ir.Value // shards already made, by how and of what
}

// layer puts the body into a par region and splits it op by op.
func (s *sharder) layer(rep *ir.Op) error {
	inner := &ir.Block{Yield: slices.Clone(rep.Body.Yield)}
	for _, op := range rep.Body.Ops {
		if err := s.op(op); err != nil {
			return fmt.Errorf("%s: %w", where(op), err)
		}
		inner.Ops = append(inner.Ops, op)
		if len(op.Results) != 1 || !s.partial[op.Results[0]] {
			continue
		}
		sum, err := s.reduce(inner, op)
		if err != nil {
			return err
		}
		inner.Ops = append(inner.Ops, sum)
	}
	for _, y := range inner.Yield {
		if s.sharded[y] {
			return fmt.Errorf("%s leaves the layer in parts", y)
		}
	}
	var names []string
	for _, y := range inner.Yield {
		names = append(names, s.names.Fresh(y.Name))
	}
	var as ir.Attrs
	as.Set("members", s.n)
	par, err := ir.NewRegion(ir.Par, nil, as, inner, names...)
	if err != nil {
		return err
	}
	rep.Body.Ops = []*ir.Op{par}
	rep.Body.Yield = par.Results
	return nil
}

// reduce puts an all_reduce behind a partial sum and makes all readers use it.
func (s *sharder) reduce(b *ir.Block, op *ir.Op) (*ir.Op, error) {
	sum, err := ir.NewOp(s.env.Ops.Lookup("all_reduce"), []ir.Arg{ir.A(op.Result())}, nil, s.names.Fresh(op.Result().Name+"_sum"))
	if err != nil {
		return nil, err
	}
	for _, u := range s.uses[op.Result()] {
		switch {
		case u.Op == nil:
			for i, y := range b.Yield {
				if y == op.Result() {
					b.Yield[i] = sum.Result()
				}
			}
		default:
			u.Op.Args[u.Arg].Value = sum.Result()
		}
	}
	s.uses[sum.Result()] = s.uses[op.Result()]
	return sum, nil
}

// op splits one op, by what its arguments are.
func (s *sharder) op(op *ir.Op) error {
	split := 0
	for _, a := range op.Args {
		if s.sharded[a.Value] {
			split++
		}
	}
	switch {
	case op.Def.Name == "matmul" && split > 0:
		w, err := s.shard(op.Args[1], "part_cols")
		if err != nil {
			return err
		}
		op.Args[1] = w
		s.partial[op.Result()] = true
		return op.Reinfer()
	case op.Def.Name == "matmul" && s.inside(op.Result(), 0):
		w, err := s.shard(op.Args[1], "part_rows")
		if err != nil {
			return err
		}
		op.Args[1] = w
		return s.mark(op)
	case split == 0:
		return nil
	}
	return s.along(op)
}

// along splits an op whose input is already in parts.
func (s *sharder) along(op *ir.Op) error {
	switch {
	case op.Def.Is(ir.Elementwise):
		for i, a := range op.Args {
			switch {
			case a.Kind == ir.Weight:
				w, err := s.shard(a, "part_cols")
				if err != nil {
					return err
				}
				op.Args[i] = w
			case !s.sharded[a.Value]:
				return fmt.Errorf("%s is whole where the other argument is in parts", a.Value)
			}
		}
	case op.Def.Name == "kv_append":
		return s.state(op.Args[0].Value)
	case op.Def.Name == "attention":
		if op.Has("alibi") || op.Bool("sinks") {
			return fmt.Errorf("per-head slopes and sinks cannot be split over members yet")
		}
		for _, name := range []string{"heads", "kv_heads"} {
			if err := s.divide(op, name); err != nil {
				return err
			}
		}
	case op.Def.Attr("heads") != nil && op.Int("heads") > 1:
		if err := s.divide(op, "heads"); err != nil {
			return err
		}
	default:
		return fmt.Errorf("needs whole rows of a value that is in parts")
	}
	return s.mark(op)
}

// divide gives each member its share of a head count.
func (s *sharder) divide(op *ir.Op, attr string) error {
	h := op.Int(attr)
	if h%s.n != 0 {
		return fmt.Errorf("%s=%d cannot be shared by %d devices", attr, h, s.n)
	}
	op.SetAttr(attr, h/s.n)
	return nil
}

func (s *sharder) mark(op *ir.Op) error {
	if err := op.Reinfer(); err != nil {
		return err
	}
	for _, r := range op.Results {
		s.sharded[r] = true
	}
	return nil
}

// state gives each member its heads of a state, once.
func (s *sharder) state(v *ir.Value) error {
	if len(v.Count) == 2 {
		return nil
	}
	for i := range v.State.Fields {
		f := &v.State.Fields[i]
		if f.Shape[0]%s.n != 0 {
			return fmt.Errorf("%d key and value heads cannot be shared by %d devices", f.Shape[0], s.n)
		}
		f.Shape = slices.Clone(f.Shape)
		f.Shape[0] /= s.n
	}
	v.Count = append(slices.Clone(v.Count), ir.Range{Lo: 0, Hi: s.n})
	return nil
}

// shard is the weight of which each member holds one part.
func (s *sharder) shard(a ir.Arg, how string) (ir.Arg, error) {
	if a.Index != nil {
		return a, fmt.Errorf("%s is indexed by hand", a.Value)
	}
	t := a.Type
	axis := 0
	if how == "part_cols" {
		axis = len(t.Shape) - 1
	}
	if len(t.Shape) == 1 {
		how = "part_rows"
	}
	n := t.Shape[axis].N
	if n%s.n != 0 {
		return a, fmt.Errorf("%s has %d rows or columns, which %d devices cannot share", a.Value, n, s.n)
	}
	key := how + a.Name
	if s.weights[key] == nil {
		shape := slices.Clone(t.Shape)
		shape[axis] = ir.N(n / s.n)
		w := &ir.Value{Name: s.names.Fresh(a.Name + "_part"), Kind: ir.Weight, Type: ir.T(t.Elem, shape...),
			Count:  append(slices.Clone(a.Count), ir.Range{Lo: 0, Hi: s.n}),
			Recipe: &tensor.Recipe{Op: how, Args: []*tensor.Recipe{{Op: "weight", Name: a.Name}}, Nums: []float64{float64(s.n)}}}
		s.mod.Weights = append(s.mod.Weights, w)
		s.weights[key] = w
	}
	return ir.A(s.weights[key]), nil
}

// inside says whether everything that reads a value is work that members share:
// attention and its state, or the matmul that ends the sub-layer.
func (s *sharder) inside(v *ir.Value, depth int) bool {
	us := s.uses[v]
	if len(us) == 0 || depth > 12 {
		return false
	}
	for _, u := range us {
		switch {
		case u.Op == nil:
			return false
		case u.Op.Def.Name == "matmul", u.Op.Def.Name == "kv_append", u.Op.Def.Name == "attention":
		case u.Op.Def.Is(ir.Elementwise) || u.Op.Def.Attr("heads") != nil && u.Op.Int("heads") > 1:
			for _, a := range u.Op.Args {
				if a.Value != v && a.Kind == ir.Carry {
					return false
				}
			}
			if !s.inside(u.Op.Results[0], depth+1) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func where(op *ir.Op) string { return fmt.Sprintf("%s: op %s", op.Pos, op.Def.Name) }
