package spec

import (
	"cmp"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

func scanMixer() *mixer {
	return &mixer{
		word: "selective_scan", prefix: "scan", required: []string{"win.weight", "conv.weight", "x_proj.weight", "dt.weight", "a_log.weight", "d.weight", "wo.weight"},
		write: (*lowerer).selectiveScan, scales: noScales,
	}
}

// selectiveScan writes Mamba (Gu and Dao 2023, algorithm 2 and figure 3).
func (l *lowerer) selectiveScan(x string) string {
	ma := l.s.in("scan.")
	a := l.tensors[layerName(ma+"a_log.weight", l.at)].Shape
	dt := l.tensors[layerName(ma+"dt.weight", l.at)].Shape
	if len(a) != 2 || len(dt) != 2 || dt[0] != a[0] {
		l.fail("selective_scan: A_log of shape %v and dt of shape %v; want [channels, state] and [channels, rank]", a, dt)
		return x
	}
	width, state, rank := a[0], a[1], dt[1]
	c, z := rowsCut(0, width), rowsCut(width, 2*width)
	u, gate := l.linear("u", "scan_wx", ma+"win", x, c), l.linear("z", "scan_wz", ma+"win", x, z)
	u, gate = l.bias("u", "scan_wx_bias", ma+"win", u, c), l.bias("z", "scan_wz_bias", ma+"win", gate, z)
	u = l.activationOp(l.Net.Scan.Act, l.convolved("selective_scan", "u", u, []string{ma + "conv"}, nil))

	var parts []string
	at := 0
	for i, name := range []string{"dt", "b", "c"} {
		size := []int{rank, state, state}[i]
		p := l.linear(name, "scan_x_"+name, ma+"x_proj", u, rowsCut(at, at+size))
		parts, at = append(parts, l.scanNorm(p, name)), at+size
	}
	step := l.affine("dt", "scan_dt", ma+"dt", parts[0])
	step = l.t.op("dt", "softplus", []string{step}, nil)
	y := l.t.op("y", "selective_scan", []string{l.fixed("scan", "h", width, state), u, step, parts[1], parts[2],
		l.decayRate("scan_a", ma+"a_log", []int{width, state}, -1, 1)}, nil)
	skip := l.t.op("s", "mul", []string{u, l.weight("scan_d", ma+"d.weight", nil)}, nil)
	y = l.t.op("y", "add", []string{y, skip}, nil)
	y = l.t.op("y", "mul", []string{y, l.t.op("act", "silu", []string{gate}, nil)}, nil)
	return l.affine("o", "scan_wo", ma+"wo", y)
}

// scanNorm normalizes the projection dt, b or c if the model has a norm for it.
func (l *lowerer) scanNorm(x, name string) string {
	eps := cmp.Or(l.Net.Scan.NormEps, l.Net.NormEps)
	w := l.weight("scan_"+name+"_norm", l.s.in("scan."+name+"_norm.weight"), nil)
	if w == "" && !l.Net.Scan.Norms {
		return x
	}
	return l.normWith(name+"n", "rms", x, w, "", eps, 0, 1)
}

func ssdMixer() *mixer {
	return &mixer{
		word: "ssd", prefix: "ssd", required: []string{"win.weight", "conv.weight", "a_log.weight", "dt.bias", "d.weight", "wo.weight"},
		shapes: func(m *Model, s *stack, add func(string, ...int)) {
			n := m.Net.SSD
			width := n.Heads * n.HeadDim
			add("win.weight", 2*width+2*n.Groups*n.StateSize+n.Heads, s.hyper.Hidden)
			add("wo.weight", s.hyper.Hidden, width)
			add("dt.bias", n.Heads)
			add("a_log.weight", n.Heads)
			add("d.weight", n.Heads)
			add("norm.weight", width)
			add("conv.bias", width+2*n.Groups*n.StateSize)
		},
		check: func(n *Network) error {
			f := n.SSD
			if err := positive("heads", f.Heads, "head_dim", f.HeadDim, "groups", f.Groups, "state_size", f.StateSize); err != nil {
				return err
			}
			if f.Heads%f.Groups != 0 || len(f.Scales) != 0 && len(f.Scales) != 5 {
				return fmt.Errorf("heads %d, groups %d, %d scales; want heads to be a multiple of groups, and 5 scales if any", f.Heads, f.Groups, len(f.Scales))
			}
			return nil
		},
		write:  (*lowerer).ssd,
		scales: func(n *Network) (float64, float64) { return n.SSD.OutScale, 0 },
	}
}

// ssd writes Mamba-2 (Dao and Gu 2024, §7.1) as linear attention: C are the
// queries, B the keys, x the values, and the step size dt scales both what is written
// and the decay.
func (l *lowerer) ssd(x string) string {
	n, ma := l.Net.SSD, l.s.in("ssd.")
	width, bc := n.Heads*n.HeadDim, n.Groups*n.StateSize
	scales := n.Scales
	if len(scales) == 0 {
		scales = []float64{1, 1, 1, 1, 1}
	}
	x = l.scaled("h", x, n.InScale)
	var parts [3]string
	at := 0
	names := []string{"z", "xbc", "dt"}
	for i, size := range []int{width, width + 2*bc, n.Heads} {
		c := rowsCut(at, at+size)
		parts[i] = l.linear(names[i], "ssd_w"+names[i], ma+"win", x, c)
		parts[i] = l.bias(names[i], "ssd_w"+names[i]+"_bias", ma+"win", parts[i], c)
		at += size
	}
	z, dt := l.scaled("z", parts[0], scales[0]), l.scaled("dt", parts[2], scales[4])
	xbc := l.convolved("ssd", "xbc", parts[1], []string{ma + "conv"}, columnScales(scales[1:4], []int{width, bc, bc}))
	xbc = l.activationOp(n.Act, xbc)
	p := l.splitInto(xbc, []string{"u", "b", "c"}, []int{width, bc, bc})

	dt = l.t.op("dt", "add", []string{dt, l.weight("ssd_dt", ma+"dt.bias", nil)}, nil)
	dt = l.t.op("dt", "softplus", []string{dt}, nil)
	if n.DTMin > 0 || n.DTMax > 0 {
		hi := math.Inf(1)
		if n.DTMax > 0 {
			hi = n.DTMax
		}
		dt = l.t.op("dt", "clamp", []string{dt}, attrs{}.num("lo", n.DTMin).num("hi", hi))
	}
	decay := l.t.op("d", "mul", []string{dt, l.decayRate("ssd_a", ma+"a_log", []int{n.Heads}, -1, 1)}, nil)
	a := attrs{}.int("heads", n.Heads)
	if n.Groups != n.Heads {
		a = a.int("key_heads", n.Groups)
	}
	skip := l.weight("ssd_d", ma+"d.weight", rowVectorOf(l.tensors[layerName(ma+"d.weight", l.at)]))
	y := l.t.op("y", "linear_recurrence", []string{l.fixed("ssd", "s", n.Heads, n.StateSize, n.HeadDim), p[2], p[1], p[0], decay, dt, skip},
		a.word("decay", "head").flag("beta").flag("skip"))
	y = l.gatedNorm(ma, y, z, &n.Norm, n.Groups, width)
	return l.affine("o", "ssd_wo", ma+"wo", y)
}

// columnScales returns a transform that multiplies consecutive rows of a convolution's
// kernel, which are the columns of its input, by a factor each; nil if all are 1.
func columnScales(factors []float64, rows []int) func(r *tensor.Transform) *tensor.Transform {
	same := true
	for _, f := range factors {
		same = same && f == 1
	}
	if same {
		return nil
	}
	return func(r *tensor.Transform) *tensor.Transform {
		var parts []*tensor.Transform
		at := 0
		for i, f := range factors {
			part := apply("rows", r, at, at+rows[i])
			parts, at = append(parts, &tensor.Transform{Op: "scale", Args: []*tensor.Transform{part}, Nums: []float64{f}}), at+rows[i]
		}
		return concatenated(parts)
	}
}
