package cpu

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// experts emits a mixture of experts: see ifl_moe.h.
func (e *emitter) experts(r *layout.Region, x *layout.Experts) error {
	w := e.w
	in, hidden := actKind(x.Act), actKind(x.HiddenAct)
	w.P("const ifl_experts e = {")
	w.P(".pool = c->pool, .tid = tid, .threads = c->threads, .rows = %s, .experts = %d, .top_k = %d,", rowCount(r.Role), x.Count, x.TopK)
	w.P(".x = %s, .ldx = %d, .route = %s, .ldr = %d,", e.names.Rows(x.X), x.X.Pitch, e.names.Rows(x.Route), x.Route.Pitch)
	w.P(".out = %s, .ldo = %d, .act_in = %s, .act_hidden = %s, .outliers = %d,", e.names.Rows(x.Out), x.Out.Pitch, in, hidden, x.Outliers)
	for _, m := range []struct {
		field string
		act   tensor.DType
		*layout.Expert
	}{{"gate", x.Act, x.Gate}, {"up", x.Act, x.Up}, {"down", x.HiddenAct, x.Down}} {
		if m.Expert == nil {
			continue
		}
		if err := e.expert(r, x, m.field, actName(m.act), m.Expert); err != nil {
			return err
		}
	}
	w.P(".act = IFL_%s, .limit = %s, .alpha = %s,", strings.ToUpper(x.Activation), ctext.Float(x.Limit), ctext.Float(x.Alpha))
	if x.ScaleInput {
		w.P(".scale_input = 1,")
	}
	w.P(".shared = c->experts, .y = own->y, .mm = own->mm,")
	w.P("};")
	w.P("ifl_run_experts(&e);")
	e.need.mixtures = append(e.need.mixtures, fmt.Sprintf("{%d, %d, %d, %d, %s, %s}", x.Count, x.TopK, x.X.Cols, x.Hidden, in, hidden))
	e.need.k = max(e.need.k, x.Hidden, x.X.Cols)
	e.need.group = max(e.need.group, 2*64)
	return nil
}

// expert emits the description of one matrix of the experts, for inputs packed as act, and
// adds its call.
func (e *emitter) expert(r *layout.Region, x *layout.Experts, field, act string, m *layout.Expert) error {
	address, err := e.names.Weight(m.Arg, r.Loop)
	if err != nil {
		return err
	}
	p := m.Weight
	number, impls, err := e.call(m.Call, act)
	if err != nil {
		return err
	}
	e.reads(r, manifest.Product{Matmul: number, Weight: p.Name, Rows: x.TopK, Experts: x.Count})
	e.w.P(".%s = {", field)
	e.w.P(".w = %s, .stride = %s, .panel = %d, .n = %d, .k = %d,", address, ctext.Wide(p.Bytes()), p.PanelBytes(), p.N, p.K)
	e.w.P(".impls = %s, .choice = c->dispatch + %d * IFL_ROWS,", impls, number)
	if m.Bias != nil {
		bias, err := e.names.Weight(*m.Bias, r.Loop)
		if err != nil {
			return err
		}
		e.w.P(".bias = %s, .bias_stride = %d,", bias, e.layout.Weights[m.Bias.Value].Bytes()/4)
	}
	e.w.P("},")
	return nil
}
