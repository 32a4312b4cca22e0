package codegen

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	weightfile "github.com/iflowc/iflowc/runtime/artifact/packed"
)

// A packed is where a weight lies in the packed region: element i of an array
// begins at at + (i−lo)·stride.
type packed struct {
	layout string // "panel16" or "row"
	dtype  tensor.DType
	n, k   int // matrix [n, k]; vector: n = 1
	bytes  int64
	at     int64
	lo     int
	stride int64 // 0: not an array
	sized  bool
	table  bool // nothing but rows is looked up in it, and so it may lie elsewhere
	deltas int  // entries of a matrix that lie behind its panels, at most

	layers  *ir.Range // what a repeat's index runs over, or nil
	experts int       // matrices side by side in each element, or 0
}

// A state is where a state lies: element i of its pages begins at
// (at + (i−lo)·page) · pages.
type state struct {
	*ir.StateType
	elem     tensor.DType
	kvHeads  int
	dim      int
	vdim     int
	page, at int64
	lo       int
}

// A slot is a buffer of the arena that values share in turn.
type slot struct {
	id   int
	rows string // role of its row count: "tokens", "wanted", "sequences"
	cols int    // widest value, rounded up to 16
}

// plan lays out weights, states and buffers, in the order of execution.
func (g *cpuGen) plan() error {
	g.weights = map[*ir.Value]*packed{}
	g.states = map[*ir.Value]*state{}
	g.need.act = map[string]int{}
	for _, gr := range g.mod.Graphs {
		if err := g.planUses(gr.Body); err != nil {
			return err
		}
	}
	if err := g.placeWeights(); err != nil {
		return err
	}
	if err := g.placeStates(); err != nil {
		return err
	}
	for _, gr := range g.mod.Graphs {
		g.planSlots(gr.Body)
		g.out.Manifest.Graphs = append(g.out.Manifest.Graphs, manifest.Graph{Name: gr.Name, Outputs: outputs(gr), At: g.outputsAt(gr), Reads: g.reads(gr)})
	}
	return nil
}

func outputs(gr *ir.Graph) []manifest.Output {
	var outs []manifest.Output
	for _, y := range gr.Body.Yield {
		outs = append(outs, manifest.Output{Name: y.OutputName(), Rows: y.Role(), Cols: round16(y.Type.Cols()), Used: y.Type.Cols()})
	}
	return outs
}

// planUses finds how each weight is used: as a matrix in panels, or as a row.
func (g *cpuGen) planUses(b *ir.Block) error {
	for _, op := range b.Ops {
		if op.Body != nil {
			if op.Def.Name == "par" {
				return fmt.Errorf("%s: the cpu target runs tensor groups in the interpreter only; compile with one device", pos(op))
			}
			if err := g.planUses(op.Body); err != nil {
				return err
			}
		}
		for i, a := range op.Args {
			if a.Kind != ir.Weight || g.weights[a.Value] != nil {
				continue
			}
			p := &packed{layout: "row", dtype: tensor.F32, n: 1, k: a.Type.Cols()}
			if len(a.Type.Shape) == 2 {
				p.n = a.Type.Shape[0].N
			}
			if op.Def.Name == "experts" {
				p.experts = a.Count[len(a.Count)-1].Len()
			}
			if isMatrix(op, i) {
				p.layout, p.dtype, p.deltas = "panel16", a.Type.Elem, g.deltasOf(a.Value)
			}
			if len(a.Count) > 2 || len(a.Count) == 2 && p.experts == 0 {
				return fmt.Errorf("%s: the cpu target cannot index %s by %d indices", pos(op), a.Value, len(a.Count))
			}
			if p.layers = layerCount(a.Value, p); p.layers != nil {
				p.lo = p.layers.Lo
			}
			p.bytes = p.size() * int64(max(p.experts, 1))
			g.weights[a.Value] = p
		}
	}
	return nil
}

// isMatrix says whether argument i of an op is multiplied by (or looked up in),
// and so packed in panels.
func isMatrix(op *ir.Op, i int) bool {
	switch op.Def.Name {
	case "matmul", "embed":
		return i == 1
	case "experts":
		return len(op.Args[i].Type.Shape) == 2
	}
	return false
}

// layerCount is the index of a weight that a repeat supplies: its first, but
// for the experts of a layer that stands alone.
func layerCount(v *ir.Value, p *packed) *ir.Range {
	if len(v.Count) == 2 || len(v.Count) == 1 && p.experts == 0 {
		return &v.Count[0]
	}
	return nil
}

// size is the packed size of one matrix or vector, in bytes.
func (p *packed) size() int64 {
	if p.layout == "row" {
		return round64(int64(p.n) * int64(round16(p.k)) * 4)
	}
	return p.panels() + weightfile.DeltaBytes(p.n, p.deltas)
}

// panels is the size of the panels of a matrix; its deltas lie behind them.
func (p *packed) panels() int64 { return round64(int64(round16(p.n)/16) * p.panel()) }

// panel is the size of a panel of 16 rows, in bytes: packing moves the bits of
// blocks about but neither adds nor drops any.
func (p *packed) panel() int64 {
	b := p.dtype.Block()
	return int64((p.k+b-1)/b) * 16 * int64(p.dtype.BlockBytes())
}

// placeWeights gives every used weight its place: those of a repeat layer by
// layer, so that a step reads the region once from front to back.
func (g *cpuGen) placeWeights() error {
	at := int64(0)
	one := func(v *ir.Value, index []int) {
		p := g.weights[v]
		w := manifest.Weight{Name: v.Name, Index: index, DType: p.dtype,
			Rows: p.n, Cols: p.k, Layout: p.layout, Offset: at, Bytes: p.size(), Deltas: p.deltas}
		item := pack.Item{Name: w.Name, Index: index, Recipe: g.resolve(v.Recipe), DType: w.DType, Rows: w.Rows, Cols: w.Cols, Layout: w.Layout, Deltas: w.Deltas}
		w.Sources = item.Sources()
		g.out.Manifest.Weights, g.out.Pack = append(g.out.Manifest.Weights, w), append(g.out.Pack, item)
		g.out.Manifest.Params += int64(p.n) * int64(p.k)
		at += w.Bytes
	}
	put := func(v *ir.Value, index []int) {
		p := g.weights[v]
		if p.experts == 0 {
			one(v, index)
		}
		for e := range p.experts {
			one(v, append(slices.Clone(index), v.Count[len(v.Count)-1].Lo+e))
		}
	}
	var walk func(b *ir.Block)
	walk = func(b *ir.Block) {
		for _, op := range b.Ops {
			if op.Def.Name == "repeat" {
				at = g.placeLayers(op, at, put)
				walk(op.Body)
				continue
			}
			for _, a := range op.Args {
				if p := g.weights[a.Value]; a.Kind == ir.Weight && !p.sized {
					g.placeWhole(a.Value, p, &at, put)
				}
			}
			if op.Body != nil {
				walk(op.Body)
			}
		}
	}
	for _, gr := range g.mod.Graphs {
		walk(gr.Body)
	}
	return nil
}

// placeWhole places a weight (or all elements of one indexed by hand) at once.
func (g *cpuGen) placeWhole(v *ir.Value, p *packed, at *int64, put func(*ir.Value, []int)) {
	p.at, p.sized = *at, true
	if p.layers == nil {
		put(v, nil)
		return
	}
	p.stride = p.bytes
	for i := p.layers.Lo; i < p.layers.Hi; i++ {
		put(v, []int{i})
	}
}

// placeLayers places the array weights that the body of a repeat uses, element
// by element of the repeat, when it covers the whole arrays.
func (g *cpuGen) placeLayers(rep *ir.Op, at int64, put func(*ir.Value, []int)) int64 {
	lo, hi := rep.Int("lo"), rep.Int("hi")
	var ws []*ir.Value
	eachArg(rep.Body, func(a ir.Arg) {
		if a.Kind != ir.Weight {
			return
		}
		if p := g.weights[a.Value]; p.layers != nil && a.Index == nil && !p.sized && *p.layers == (ir.Range{Lo: lo, Hi: hi}) {
			g.weights[a.Value].sized = true
			ws = append(ws, a.Value)
		}
	})
	stride := int64(0)
	for _, v := range ws {
		p := g.weights[v]
		p.at = at + stride
		stride += p.bytes
	}
	for i := lo; i < hi; i++ {
		for _, v := range ws {
			g.weights[v].stride = stride
			put(v, []int{i})
		}
	}
	return at + stride*int64(hi-lo)
}

func eachArg(b *ir.Block, f func(ir.Arg)) {
	for _, op := range b.Ops {
		for _, a := range op.Args {
			f(a)
		}
		if op.Body != nil {
			eachArg(op.Body, f)
		}
	}
}

// resolve replaces references to other weights of the module by their recipes.
func (g *cpuGen) resolve(r *tensor.Recipe) *tensor.Recipe {
	if r.Op == "weight" {
		return g.resolve(g.mod.Weight(r.Name).Recipe)
	}
	c := *r
	c.Args = nil
	for _, a := range r.Args {
		c.Args = append(c.Args, g.resolve(a))
	}
	return &c
}

// placeStates lays the pages out: all pages of element 0, of element 1, …
func (g *cpuGen) placeStates() error {
	at := int64(0)
	for _, v := range g.mod.States {
		if len(v.State.Fields) != 2 || v.State.Fields[0].Elem != v.State.Fields[1].Elem ||
			len(v.State.Fields[0].Shape) != 2 || len(v.State.Fields[1].Shape) != 2 {
			return fmt.Errorf("state %s: the cpu target keeps a key and a value row of one type per head", v.Name)
		}
		k, val := v.State.Fields[0], v.State.Fields[1]
		s := &state{StateType: v.State, elem: k.Elem, kvHeads: k.Shape[0], dim: k.Shape[1], vdim: val.Shape[1], at: at}
		s.page = 64 * int64(s.kvHeads) * rowBytes(s)
		count := 1
		if len(v.Count) == 1 {
			count, s.lo = v.Count[0].Len(), v.Count[0].Lo
		}
		at += s.page * int64(count)
		g.states[v] = s
		g.out.Manifest.States = append(g.out.Manifest.States, manifest.State{
			Name: v.Name, Count: count, PageRows: 64, PageBytes: s.page, Type: s.elem.String()})
	}
	return nil
}

// rowBytes is the size of one row of one head: keys and values padded to 16
// elements, and for q8_b32t2 a 16-bit scale for each 32 of them (ifl_kv.h).
func rowBytes(s *state) int64 {
	elems := int64(round16(s.dim) + round16(s.vdim))
	if s.elem == tensor.Q8B32T2 {
		return elems + 2*int64((s.dim+31)/32+(s.vdim+31)/32)
	}
	return elems * int64(s.elem.BlockBytes())
}

// planSlots gives every value that outlives its region a buffer: the one of
// its !slot note, or one of its own.
func (g *cpuGen) planSlots(b *ir.Block) {
	for _, op := range b.Ops {
		var ids []int
		for _, n := range op.Notes {
			if n.Name == "slot" {
				for _, a := range n.Args {
					id, err := strconv.Atoi(a.Val)
					if err != nil || id < 0 {
						id = -1
					}
					ids = append(ids, id)
				}
			}
		}
		for i, r := range op.Results {
			if len(ids) == len(op.Results) && ids[i] >= 0 {
				g.assign(r, g.slotNamed(ids[i], r))
			} else {
				g.assign(r, g.newSlot(r))
			}
		}
		if op.Def.Name == "repeat" {
			for i, p := range op.Body.Params {
				g.assign(p, g.slots[op.Results[i]])
			}
			g.planSlots(op.Body)
		}
	}
}

func (g *cpuGen) assign(v *ir.Value, s *slot) {
	g.slots[v] = s
	s.cols = max(s.cols, round16(v.Type.Cols()))
}

// noted slots are numbered by their notes, the others from 1000 up.
func (g *cpuGen) slotNamed(id int, v *ir.Value) *slot {
	i := slices.IndexFunc(g.list, func(s *slot) bool { return s.id == id && s.rows == v.Role() })
	if i >= 0 {
		return g.list[i]
	}
	return g.addSlot(id, v)
}

func (g *cpuGen) newSlot(v *ir.Value) *slot { return g.addSlot(1000+len(g.list), v) }

func (g *cpuGen) addSlot(id int, v *ir.Value) *slot {
	s := &slot{id: id, rows: v.Role()}
	g.list = append(g.list, s)
	return s
}

// pos is the source position of an op, for errors.
func pos(op *ir.Op) string {
	if op.Pos.Line == 0 {
		return op.Def.Name
	}
	return fmt.Sprintf("%s:%d:%d: %s", op.Pos.File, op.Pos.Line, op.Pos.Col, op.Def.Name)
}
