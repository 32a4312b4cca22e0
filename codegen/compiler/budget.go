package compiler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/artifact/sensitivity"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/kit/hostmem"
	"github.com/iflowc/iflowc/spec"
)

// A Choice is the types that the compiler chose for a budget.
type Choice struct {
	Budget   string         `json:"budget"`
	Limit    string         `json:"limit,omitempty"` // how fit was computed
	Matrices []ChosenMatrix `json:"matrices"`
	Types    []TypeEntry    `json:"types"` // for `types` of a model spec

	WeightBytes   int64   `json:"weight_bytes"`
	BitsPerWeight float64 `json:"bits_per_weight"`
	Loss          float64 `json:"loss"` // expected KL divergence from the stored weights, in nats

	Tokens int    `json:"tokens"`           // that sensitivity was measured on; 0: not measured
	Why    string `json:"reason,omitempty"` // why it was not measured

	Best    []LossPoint `json:"best"`    // the best choice of each size
	Uniform []LossPoint `json:"uniform"` // all matrices in one type, but heads in that of dtype.Type.OfHead
}

// A ChosenMatrix is a group of matrices that the choice gives one type.
type ChosenMatrix struct {
	Weights     string  `json:"weights"`
	Type        string  `json:"type"`
	Bytes       int64   `json:"bytes"`
	Bits        float64 `json:"bits_per_weight"`
	Sensitivity float64 `json:"sensitivity"` // loss per squared relative error of the weights
	Loss        float64 `json:"loss"`        // its part of the sum of losses
}

// A TypeEntry is an entry of a model spec's `types`.
type TypeEntry struct {
	Weight string `json:"weight"`
	Type   string `json:"type"`
}

// A LossPoint is a size of all weights and the expected loss.
type LossPoint struct {
	Type  string  `json:"type,omitempty"`
	Bytes int64   `json:"bytes"`
	Loss  float64 `json:"loss"`
}

// A budgeter chooses types.
type budgeter struct {
	opt    *Options
	stored *Model // with the types of its files

	lowered *ir.Module // of stored, before any pass
	float   *Program   // the model in f16
	merged  *ir.Module // of float, after MergeProjections

	units    []*unit
	fixed    int64 // bytes of the file that do not depend on the choice
	elements int64 // number of weights
	sums     *sensitivity.Result
	noise    float64
	response response
	why      string // why the sensitivities were not measured
}

// choose returns the types for a model whose spec has a budget.
func choose(ctx context.Context, path string, stored *Model) (*Choice, error) {
	b := &budgeter{opt: &stored.opt, stored: stored}
	if stored.opt.SparseOutliers > 0 || stored.Spec.DeltaTensorRatio > 0 {
		return nil, InputError{fmt.Errorf("a budget (--quant %s) counts no sparse outliers; omit one of them", stored.Spec.Budget)}
	}
	var err error
	if b.lowered, err = stored.Lower(); err != nil {
		return nil, err
	}
	opt := stored.opt
	opt.Quant, opt.Importance, opt.Devices, opt.Notice, opt.SparseOutliers = "f16", "", "", nil, 0
	opt.Target, opt.Emit, opt.EmbedWeights, opt.NoWeights, opt.KeepSources, opt.Activations, opt.Skip = "cpu", "", false, false, "", "", nil
	isa, err := ISAHere("")
	if err != nil {
		return nil, err
	}
	opt.ISA = isa.Name
	m, err := open(path, opt, nil)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if b.float, err = m.Generate(ctx); err != nil {
		return nil, err
	}
	b.float.ranks = nil
	if b.merged, err = m.OneDevice(passes.Options{Limit: -1, After: "merge-projections"}); err != nil {
		return nil, err
	}
	if err := b.measure(ctx); err != nil {
		return nil, err
	}
	return b.solve()
}

// measure makes the units and measures what their errors cost.
func (b *budgeter) measure(ctx context.Context) error {
	plan, err := b.planSensitivity()
	if err != nil {
		return err
	}
	if b.sums, b.why, err = b.sensitivities(ctx, plan); err != nil {
		return err
	}
	if b.why != "" {
		b.sums = b.usual()
		b.opt.notice("sensitivities are not measured, because %s: all weights count alike", b.why)
	}
	b.noise = plan.Noise
	if err := b.measureErrors(ctx); err != nil {
		return err
	}
	all := 0.0
	for _, kl := range b.sums.Units {
		all += significant(kl)
	}
	for i, noise := range plan.Curve {
		if i < len(b.sums.Curve) && b.sums.Curve[i] > 0 && all > 0 {
			b.response.sum = append(b.response.sum, all*noise*noise/(plan.Noise*plan.Noise))
			b.response.loss = append(b.response.loss, significant(b.sums.Curve[i]))
		}
	}
	b.fixed = 0
	for _, w := range b.float.whole.CPU.Manifest.Weights {
		b.fixed += w.Bytes
		b.elements += int64(w.Rows) * int64(w.Cols)
	}
	for _, u := range b.units {
		b.fixed -= u.bytes(tensor.F16)
	}
	return nil
}

// sensitivity returns a unit's loss per squared relative error.
func (b *budgeter) sensitivity(i int) float64 {
	return significant(b.sums.Units[i]) / (b.noise * b.noise * max(b.units[i].flat, 1e-3))
}

// options lists each unit's options.
func (b *budgeter) options() (list [][]option) {
	for i, u := range b.units {
		var options []option
		for _, t := range b.typesOf(u) {
			options = append(options, option{t, u.bytes(t), b.sensitivity(i) * u.errors[t]})
		}
		list = append(list, hull(options))
	}
	return list
}

// solve chooses the types for the budget.
func (b *budgeter) solve() (*Choice, error) {
	units := b.options()
	list := selections(units)
	c := &Choice{Budget: b.stored.Spec.Budget.String(), Tokens: b.sums.Tokens, Why: b.why}
	for _, s := range list {
		c.Best = append(c.Best, LossPoint{Bytes: b.fixed + s.bytes, Loss: b.response.of(s.loss)})
	}
	b.uniform(c)
	s, err := b.pick(c, units, list)
	if err != nil {
		return nil, err
	}
	c.WeightBytes, c.Loss = b.fixed+s.bytes, b.response.of(s.loss)
	c.BitsPerWeight = 8 * float64(c.WeightBytes) / float64(max(b.elements, 1))
	for i, u := range b.units {
		o := units[i][s.of[i]]
		c.Matrices = append(c.Matrices, ChosenMatrix{Weights: u.text(), Type: o.typ.String(), Bytes: o.bytes,
			Bits: 8 * float64(o.bytes) / float64(max(u.weights, 1)), Sensitivity: b.sensitivity(i), Loss: o.loss})
	}
	c.Types = b.entries(units, s)
	return c, nil
}

// pick returns the selection for the budget.
func (b *budgeter) pick(c *Choice, units [][]option, list []selection) (selection, error) {
	budget := b.stored.Spec.Budget
	bytes := int64(0)
	switch {
	case budget.Loss > 0:
		for _, s := range list {
			if b.response.of(s.loss) <= budget.Loss {
				return s, nil
			}
		}
		last := list[len(list)-1]
		return last, nil // nothing rounds less
	case budget.Bits > 0:
		bytes = int64(budget.Bits * float64(b.elements) / 8)
	case budget.Bytes > 0:
		head, err := b.headBytes()
		if err != nil {
			return selection{}, err
		}
		bytes = budget.Bytes - head
	default:
		var err error
		if bytes, c.Limit, err = b.fitting(); err != nil {
			return selection{}, err
		}
	}
	s, ok := largest(units, list, bytes-b.fixed)
	if !ok {
		hint := ""
		if budget.Fit {
			hint = fmt.Sprintf("; the limit is %s; lower --context, or use --kv q8", c.Limit)
		}
		return s, InputError{fmt.Errorf("--quant %s: %.1f MB are too few for %s; its smallest types take %.1f MB (%.2f bits per weight)%s", budget, float64(bytes)/1e6,
			b.stored.Spec.Name, float64(b.fixed+s.bytes)/1e6, 8*float64(b.fixed+s.bytes)/float64(b.elements), hint)}
	}
	return s, nil
}

// headBytes returns the size of a weights file without its data.
func (b *budgeter) headBytes() (int64, error) {
	var items []packed.Item
	for _, w := range b.float.whole.CPU.Manifest.Weights {
		items = append(items, packed.Item{Name: w.Name + "_000", Index: w.Index, DType: tensor.Q8B32T2, Rows: w.Rows, Cols: w.Cols, Layout: w.Layout, Offset: w.Offset, Bytes: w.Bytes})
	}
	head, err := packed.Header(packed.Source(noSum, noSum), noSum, b.fixed, items)
	return int64(len(head)), err
}

// noSum has the length of a SHA-256 in hexadecimal.
const noSum = "0000000000000000000000000000000000000000000000000000000000000000"

// fitting returns the bytes of weights that the memory holds beside the KV cache of one
// sequence of planned tokens and a step's values. It leaves a fifth of the memory: the
// engine plans with four fifths too.
func (b *budgeter) fitting() (bytes int64, why string, err error) {
	here, name := hostmem.Available(), "this machine's available memory"
	if b.opt.forGPU() {
		name = "the GPU's available memory"
		if here, err = gpuMemory(); err != nil {
			return 0, "", InputError{fmt.Errorf("--quant fit: %w; give the size of the weights instead, such as --quant 20GB", err)}
		}
	}
	if here <= 0 {
		return 0, "", InputError{fmt.Errorf("--quant fit: the available memory cannot be read here; give the size of the weights instead, such as --quant 3GB")}
	}
	n := b.stored.need(b.float.whole, b.stored.planned())
	other := n.StateBytes + n.FixedBytes + n.ActivationBytes
	why = fmt.Sprintf("4/5 of %s (%.1f MB), less the KV cache for %d tokens and activations (%.1f MB)", name, float64(here)/1e6, b.stored.planned(), float64(other)/1e6)
	return max(0, here/5*4-other), why, nil
}

// gpuMemory returns the free memory of the first GPU.
func gpuMemory() (int64, error) {
	driver, err := cuda.OpenDriver("")
	if err != nil {
		return 0, err
	}
	gpu, err := driver.OpenGPU(0)
	if err != nil {
		return 0, err
	}
	return gpu.Available()
}

// uniform adds the losses of the types that --quant names.
func (b *budgeter) uniform(c *Choice) {
	for _, t := range budgetTypes {
		p := LossPoint{Type: t.String(), Bytes: b.fixed}
		for i, u := range b.units {
			own := t
			if u.group.Head {
				own = t.OfHead()
			}
			if u.only != tensor.Invalid {
				own = u.only
			}
			if !u.allows(own) {
				own = tensor.F16
			}
			p.Bytes += u.bytes(own)
			p.Loss += b.sensitivity(i) * u.errors[own]
		}
		p.Loss = b.response.of(p.Loss)
		c.Uniform = append(c.Uniform, p)
	}
}

// entries returns the `types` of a model spec that make a selection. Adjacent layers of one
// type share an entry.
func (b *budgeter) entries(units [][]option, s selection) (list []TypeEntry) {
	type run struct {
		weight string
		typ    tensor.DType
		lo, hi int
	}
	var runs []run
	for i, u := range b.units {
		t := units[i][s.of[i]].typ
		for _, w := range u.group.Weights {
			at := slices.IndexFunc(runs, func(r run) bool { return r.weight == w.Name && r.typ == t && r.hi == u.lo && u.hi > 0 })
			if at >= 0 {
				runs[at].hi = u.hi
				continue
			}
			runs = append(runs, run{w.Name, t, u.lo, u.hi})
		}
	}
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.weight, b.weight) })
	for _, r := range runs {
		list = append(list, TypeEntry{b.stored.LayersKey(r.weight, r.lo, r.hi), r.typ.String()})
	}
	return list
}

// specTypes converts the choice for a spec.
func (c *Choice) specTypes() (list spec.OrderedMap) {
	for _, e := range c.Types {
		list = append(list, spec.Entry{Key: e.Weight, Val: e.Type})
	}
	return list
}
