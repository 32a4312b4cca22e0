package cuda

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// An expert describes one matrix of the experts: addresses in C, the bytes of one
// expert's matrix, and its bias or "".
type expert struct {
	dt              tensor.DType
	w, stride, bias string
}

// A mixture is a mixture of experts that is being emitted: see ifl_experts.cuh.
type mixture struct {
	*layout.Experts
	u          *unit
	region     *layout.Region
	in, hidden act
	pairs      string // C expression of the scratch
}

func (e *emitter) experts(s *schedule, r *layout.Region, x *layout.Experts) error {
	u := e.unit(r.Function())
	u.include("ifl_experts.cuh")
	m := &mixture{Experts: x, u: u, region: r, in: actOf(x.Act, x.Outliers), hidden: actOf(x.HiddenAct, 0)}
	limit, d := "c->max_tokens", x.X.Cols
	if r.Role == "out_rows" {
		limit = "c->max_out_rows"
	}
	m.pairs = fmt.Sprintf("ifl_pairs(c->experts, %d, %s, %d, %s, %s)", x.Count, limit, x.TopK, ctext.Wide(m.in.bytes(d)), ctext.Wide(m.hidden.bytes(x.Hidden)))
	err := u.render("experts", u.name, map[string]any{ // the template defines several kernels
		"Doc": r.Doc, "Experts": x.Count, "Max": limit, "TopK": x.TopK, "D": d, "Count": rowCount(r.Role), "In": m.in.name, "Pairs": m.pairs,
		"Route": u.names.Rows(x.Route), "LdRoute": x.Route.Pitch, "X": u.names.Rows(x.X), "LdX": x.X.Pitch,
		"Out": u.names.Rows(x.Out), "LdOut": x.Out.Pitch, "LdPair": layout.Round16(d), "Scaled": x.ScaleInput,
	})
	if err != nil {
		return err
	}
	e.out.Plan.Experts = append(e.out.Plan.Experts, manifest.CUDAExperts{
		Experts: x.Count, TopK: x.TopK, In: m.in.bytes(d), Hidden: m.hidden.bytes(x.Hidden), Out: int64(layout.Round16(d)) * 4})
	k := e.cat.Kernel("experts")
	launch := func(part string, grid ...manifest.CUDADim) {
		u.proms[u.name+"_"+part] = k.Promises
		s.launch(u.entry(k, u.name+"_"+part, 256, 0), grid...)
	}
	launch("list", blocksOf(1))
	launch("pack", blocksPer(r.Role, 1))
	if err := m.products(s); err != nil {
		return err
	}
	launch("sum", blocksOf((d+255)/256), blocksPer(r.Role, 1))
	return u.end(r.Doc)
}

// products emits the two products: for a single row, and for more.
func (m *mixture) products(s *schedule) error {
	gate, err := m.expert(m.Gate)
	if err != nil {
		return err
	}
	up, err := m.expert(m.Up)
	if err != nil {
		return err
	}
	down, err := m.expert(m.Down)
	if err != nil {
		return err
	}
	hidden, out := []expert{*gate}, []expert{*down}
	if up != nil {
		hidden = append(hidden, *up)
	}
	for _, several := range []bool{false, true} {
		for _, p := range []expertProduct{
			{"hidden", m.in, hidden, m.X.Cols, m.Hidden, m.hiddenColumns(), "{m.in, %d, nt, m.row + i}", m.writeHidden(gate, up)},
			{"down", m.hidden, out, m.Hidden, m.X.Cols, 16, "{m.hidden + i * %d, %[1]d, nt, NULL}", m.writeDown(down)},
		} {
			l, err := m.product(s, p, several)
			if err != nil {
				return err
			}
			if l.Rows, l.To = m.region.Role, 1; several {
				l.From, l.To = 2, 0
			}
		}
	}
	return nil
}

// hiddenColumns returns the columns per block of the hidden rows of a single row: whole
// blocks of their packing, whose scales are of all their columns.
func (m *mixture) hiddenColumns() int {
	return max(min(columnsFor(m.Hidden*m.TopK), 64), m.hidden.block)
}

// An expertProduct is the product of some of the experts' matrices with their rows.
type expertProduct struct {
	name     string
	act      act
	matrices []expert
	k, n     int
	cols     int // columns per block if there is one row
	rows     string
	body     string // what follows the product of row t
}

// writeHidden returns the C code that turns a row of products into a hidden row.
func (m *mixture) writeHidden(gate, up *expert) string {
	w := ctext.NewWriter(3)
	u := "0.0f"
	if up != nil {
		u = plusBias("y[cols + j]", up.bias)
	}
	x := plusBias("y[j]", gate.bias)
	if m.ScaleInput {
		w.P("const float by = (%s)[(int64_t)m.row[i + t] * %d + e];", m.u.names.Rows(m.Route), m.Route.Pitch)
		x, u = "by * "+x, "by * "+u
	}
	w.P("for (int j = g.lane; j < cols; j += 32) y[j] = ifl_expert_value<IFL_%s>(%s, %s, %v, %s, %s);",
		strings.ToUpper(m.Activation), x, u, up != nil, ctext.Float(m.Limit), ctext.Float(m.Alpha))
	w.P("g.sync();")
	w.P("%s::pack(g, m.hidden + (i + t) * %s, y, N, n0, ifl_min_int(COLS, N - n0));", m.hidden.name, ctext.Wide(m.hidden.bytes(m.Hidden)))
	return w.String()
}

// writeDown returns the C code that stores a row of products as an output row.
func (m *mixture) writeDown(down *expert) string {
	w := ctext.NewWriter(3)
	w.P("float *to = reinterpret_cast<float *>(m.out) + (i + t) * %s + n0;", ctext.Wide(int64(layout.Round16(m.X.Cols))))
	w.P("for (int j = g.lane; j < cols; j += 32) to[j] = %s;", plusBias("y[j]", down.bias))
	return w.String()
}

func plusBias(value, bias string) string {
	if bias == "" {
		return value
	}
	return value + " + (" + bias + ")[ifl_min_int(n0 + j, N - 1)]"
}

// product writes a kernel for one row or for several and launches it.
func (m *mixture) product(s *schedule, p expertProduct, several bool) (*manifest.CUDALaunch, error) {
	u, dt := m.u, p.matrices[0].dt
	nt, flat := 1, false
	if several {
		flat = p.act.flat(dt) != "" && u.e.cat.Kernel("flat_gemm").Takes(dt)
		if nt = 4; flat {
			nt, p.cols = 16, 128/len(p.matrices) // a panel for each warp
		}
	}
	tile := p.cols * len(p.matrices)
	at := 4 * max(tile/16, warps) * nt * 16 // partial sums of gemv
	if flat {
		_, at = templates.CUDAFlatBuffers(dt, nt)
	}
	holes := map[string]any{
		"Doc": fmt.Sprintf("%s: %s", m.region.Doc, p.name), "K": p.k, "N": p.n, "NT": nt, "Cols": p.cols, "Tile": tile, "At": at, "Flat": flat,
		"Pairs": m.pairs, "Rows": fmt.Sprintf(p.rows, p.act.bytes(p.k)), "Products": p.list(flat), "Body": p.body,
	}
	k, err := u.kernel("expert_matmul", fmt.Sprintf("%s_%s%d", u.name, p.name, nt), 32*warps, at+4*nt*tile, holes)
	if err != nil {
		return nil, err
	}
	experts := manifest.CUDADim{N: 1, Rows: m.region.Role, Per: 1, Times: m.TopK, Most: m.Count}
	return s.launch(k, blocksOf((p.n+p.cols-1)/p.cols), experts), nil
}

// A matrixProduct is a product for the template: of one matrix, or of two of one type.
type matrixProduct struct {
	Panel, W, Stride, Other, OtherStride string
	Matrices                             int
	Offset                               string // of its columns in the tile
}

func (p expertProduct) list(flat bool) (list []matrixProduct) {
	for i, x := range p.matrices {
		panel := p.act.panel(x.dt, "NT")
		if flat {
			panel = p.act.flat(x.dt)
		}
		if i == 1 && x.dt == p.matrices[0].dt {
			list[0].Other, list[0].OtherStride, list[0].Matrices = x.w, x.stride, 2
			break
		}
		list = append(list, matrixProduct{Panel: panel, W: x.w, Stride: x.stride, Matrices: 1, Offset: fmt.Sprintf("%d * cols", i)})
	}
	return list
}

// expert returns the description of one matrix of the experts; nil if there is none.
func (m *mixture) expert(x *layout.Expert) (*expert, error) {
	if x == nil {
		return nil, nil
	}
	u := m.u
	u.decodes(x.Weight.DType)
	w, err := u.names.Weight(x.Arg, m.region.Loop)
	if err != nil {
		return nil, err
	}
	e := &expert{dt: x.Weight.DType, w: w, stride: ctext.Wide(x.Weight.Bytes())}
	if x.Bias != nil {
		bias, err := u.names.Weight(*x.Bias, m.region.Loop)
		if err != nil {
			return nil, err
		}
		e.bias = fmt.Sprintf("%s + e * %s", bias, ctext.Wide(u.e.layout.Weights[x.Bias.Value].Bytes()/4))
	}
	return e, nil
}
