package cuda

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// An expert describes one matrix of the experts for the template.
type expert struct{ W, Stride, Bias string }

// experts emits a mixture of experts: see ifl_experts.cuh.
func (e *emitter) experts(s *schedule, r *layout.Region, x *layout.Experts) error {
	u := e.unit(r.Function())
	u.include("ifl_experts.cuh")
	in, hidden, cols := actOf(x.Act, x.Outliers), actOf(x.HiddenAct, 0), x.X.Cols
	limit := "c->max_tokens"
	if r.Role == "out_rows" {
		limit = "c->max_out_rows"
	}
	holes := map[string]any{
		"Experts": x.Count, "Max": limit, "TopK": x.TopK, "D": cols, "F": x.Hidden, "NT": 4, "Count": rowCount(r.Role),
		"Route": u.names.Rows(x.Route), "LdRoute": x.Route.Pitch, "X": u.names.Rows(x.X), "LdX": x.X.Pitch,
		"Out": u.names.Rows(x.Out), "LdOut": x.Out.Pitch, "Value": strings.ToUpper(x.Activation),
		"Limit": ctext.Float(x.Limit), "Alpha": ctext.Float(x.Alpha), "Doc": r.Doc, "In": in.name, "Hidden": hidden.name,
	}
	for _, m := range []struct {
		name, rows string
		act        act
		*layout.Expert
	}{{"Gate", "NT", in, x.Gate}, {"Up", "NT", in, x.Up}, {"Down", "1", hidden, x.Down}} {
		w, panel, err := u.expert(r, m.Expert, m.act, m.rows)
		if err != nil {
			return err
		}
		holes[m.name], holes[m.name+"Panel"] = w, panel
	}
	e.out.Plan.Experts = append(e.out.Plan.Experts, manifest.CUDAExperts{Experts: x.Count, TopK: x.TopK, In: in.bytes(cols), Hidden: hidden.bytes(x.Hidden)})
	if err := u.render("experts", u.name, holes); err != nil { // the template defines several kernels
		return err
	}
	k := e.cat.Kernel("experts")
	u.proms[u.name+"_hidden"] = k.Promises
	launch := func(part string, grid ...manifest.CUDADim) { s.launch(u.entry(k, u.name+"_"+part, 256, 0), grid...) }
	launch("list", blocksOf(1))
	launch("pack", blocksPer(r.Role, 1))
	launch("hidden", blocksOf((x.Hidden+63)/64), blocksOf(x.Count))
	launch("sum", blocksOf((cols+63)/64), blocksPer(r.Role, 1))
	return u.end(r.Doc)
}

// expert returns the description of one matrix of the experts; nil if there is none.
func (u *unit) expert(r *layout.Region, m *layout.Expert, rows act, nt string) (e expert, panel string, err error) {
	e.Bias = "NULL"
	if m == nil {
		return e, "", nil
	}
	u.decodes(m.Weight.DType)
	if e.W, err = u.names.Weight(m.Arg, r.Loop); err != nil {
		return e, "", err
	}
	e.Stride = fmt.Sprint(m.Weight.Bytes())
	if m.Bias != nil {
		bias, err := u.names.Weight(*m.Bias, r.Loop)
		if err != nil {
			return e, "", err
		}
		e.Bias = fmt.Sprintf("%s + e * %s + n0", bias, ctext.Wide(u.e.layout.Weights[m.Bias.Value].Bytes()/4))
	}
	return e, rows.panel(m.Weight.DType, nt), nil
}
