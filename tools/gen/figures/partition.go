package main

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/templates"
)

// layouts are the device strings in the picture and their names.
var layouts = []struct{ devices, name string }{
	{"0;1", "pipeline parallel"}, {"0&1", "tensor parallel"}, {"0&1;2&3", "both"},
}

// A share describes a rank's part, from its program.
type share struct {
	*passes.Rank
	heads, kvHeads   [2]int // range of the model's heads
	hidden           [2]int // columns of the feed-forward network
	bytes            int
	reduces, gathers int // exchanges: in each layer, in a step
	sends            int // numbers per token sent to the next stage
}

// sharesOf partitions a model and describes each rank's program.
func sharesOf(devices string, cat *templates.Catalog) (shares []share, err error) {
	m, err := readModel()
	if err != nil {
		return nil, err
	}
	q, _ := tensor.ParseDType(modelQuant)
	env := &passes.Env{Ops: ops.Table, Kernels: cat, Types: passes.TypeRules{Default: q}}
	for group := range strings.SplitSeq(devices, ";") {
		var list []passes.Device
		for name := range strings.SplitSeq(group, "&") {
			list = append(list, passes.Device{Name: "dev" + name})
		}
		env.Devices = append(env.Devices, list)
	}
	if err := passes.Run(env, m, passes.Pipeline, passes.Options{Limit: -1, After: passes.Partition.Name}); err != nil {
		return nil, err
	}
	ranks, err := passes.Project(m, env.Devices)
	if err != nil {
		return nil, err
	}
	env.Devices = nil
	for _, r := range ranks {
		s := shareOf(r)
		if err := passes.Run(env, r.Module, passes.Pipeline, passes.Options{Limit: -1}); err != nil {
			return nil, err
		}
		s.bytes = weightBytes(r.Module)
		shares = append(shares, s)
	}
	return shares, nil
}

// shareOf describes a rank's program after the partition.
func shareOf(r *passes.Rank) share {
	s := share{Rank: r}
	g := r.Module.Graphs[0]
	size := g.FindOps("attention")[0].Args[0].Type.Cols() / g.FindOps("attention")[0].Int("heads")
	for name, to := range map[string]*[2]int{"wq": &s.heads, "wk": &s.kvHeads, "w_gate": &s.hidden} {
		lo, hi := rowsOf(r.Module.Weight(name))
		if name != "w_gate" {
			lo, hi = lo/size, hi/size
		}
		*to = [2]int{lo, hi}
	}
	s.reduces = len(g.FindOps("all_reduce"))
	s.gathers = len(g.FindOps("all_gather"))
	for _, o := range g.FindOps("send") {
		s.sends += o.Args[0].Type.Cols()
	}
	return s
}

// rowsOf returns the range of a stored tensor's rows in a weight.
func rowsOf(w *ir.Value) (lo, hi int) {
	if t := w.Transform; t.Op == "rows" {
		return int(t.Nums[0]), int(t.Nums[1])
	}
	return 0, w.Type.Shape[0].N
}

// Coordinates of the partition picture.
const (
	rankWidth, rankHeight = 202.0, 122.0
	rankGapX, rankGapY    = 88.0, 52.0
)

// partition draws the ranks' parts and exchanges for three layouts.
func partition() ([]byte, error) {
	cat, err := templates.Load()
	if err != nil {
		return nil, err
	}
	var lists [][]share
	var descs []string
	for _, l := range layouts {
		shares, err := sharesOf(l.devices, cat)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.devices, err)
		}
		lists = append(lists, shares)
		var parts []string
		for i, s := range shares {
			parts = append(parts, fmt.Sprintf("rank %d has layers %d to %d, heads %d to %d, %.0f MB", i, s.Lo, s.Hi-1, s.heads[0], s.heads[1]-1, mb(s.bytes)))
		}
		descs = append(descs, l.devices+": "+strings.Join(parts, "; "))
	}
	p := newPicture(626, "Layouts of a model on several devices", modelTitle+" with --quant "+modelQuant+". "+strings.Join(descs, ". ")+".")
	p.head("One model, three layouts", modelTitle+", --quant "+modelQuant+", on two and four devices. Colored: what a rank has.")
	p.layout(0, 20, 70, lists)
	p.layout(1, 264, 70, lists)
	p.layout(2, 264, 260, lists)
	p.legend(20, 446)
	return p.bytes(), nil
}

// layout draws a device string's ranks: stages from top to bottom, ranks of a
// group side by side.
func (p *picture) layout(at int, x, y float64, lists [][]share) {
	shares := lists[at]
	n := shares[0].TPSize
	stages := len(shares) / n
	w := rankWidth*float64(n) + rankGapX*float64(n-1) + 24
	h := rankHeight*float64(stages) + rankGapY*float64(stages-1) + 50
	p.rect(x, y, w, h, 8, "panel")
	p.text(x+12, y+24, 14, "f-ink mono bold", layouts[at].devices)
	p.text(x+24+8.6*float64(len(layouts[at].devices)), y+24, 12.5, "f-soft", layouts[at].name)
	for i, s := range shares {
		left := x + 12 + (rankWidth+rankGapX)*float64(s.TPRank)
		top := y + 38 + (rankHeight+rankGapY)*float64(s.Stage)
		p.rank(left, top, i, s)
		if s.TPRank > 0 {
			p.exchange(left-rankGapX, top+rankHeight/2, s)
		}
		if s.sends > 0 {
			p.arrow(left+30, top+rankHeight, left+30, top+rankHeight+rankGapY, "c2")
			p.text(left+42, top+rankHeight+23, 12, "f-c2 bold", "send")
			p.text(left+42, top+rankHeight+38, 12, "f-soft", fmt.Sprintf("%d floats per token", s.sends))
		}
	}
}

// rank draws a rank's box: its layers, heads and columns.
func (p *picture) rank(x, y float64, i int, s share) {
	p.rect(x, y, rankWidth, rankHeight, 6, "box")
	p.text(x+10, y+19, 12.5, "f-ink bold", fmt.Sprintf("rank %d", i))
	p.text(x+58, y+19, 12, "f-soft", "on device "+strings.TrimPrefix(s.Device, "dev"))
	p.end(x+rankWidth-10, y+19, 12, "f-ink", fmt.Sprintf("%.0f MB", mb(s.bytes)))
	p.strip(x, y+38, "layers", 30, [2]int{s.Lo, s.Hi}, "c1")
	p.strip(x, y+60, "heads", 9, s.heads, "c2")
	p.strip(x, y+82, "KV", 3, s.kvHeads, "c3")
	p.strip(x, y+104, "hidden", 1536, s.hidden, "c4")
}

// strip draws a rank's part of n.
func (p *picture) strip(x, y float64, name string, n int, has [2]int, tint string) {
	const left, width = 54.0, 76.0
	p.text(x+10, y+9, 11.5, "f-soft", name)
	unit := width / float64(n)
	p.rect(x+left, y, width, 11, 2, "panel")
	p.rect(x+left+unit*float64(has[0]), y, unit*float64(has[1]-has[0]), 11, 2, "f-"+tint)
	if n <= 9 {
		for k := 1; k < n; k++ {
			p.line(x+left+unit*float64(k), y, x+left+unit*float64(k), y+11, 1, "s-box")
		}
	}
	text := fmt.Sprintf("%d–%d", has[0], has[1]-1)
	if has[1]-has[0] == 1 {
		text = fmt.Sprint(has[0])
	}
	p.text(x+left+width+8, y+9.5, 11.5, "f-ink", text)
}

// exchange draws the exchange between two ranks of a group.
func (p *picture) exchange(x, y float64, s share) {
	p.arrow(x+rankGapX/2, y, x, y, "c2")
	p.arrow(x+rankGapX/2, y, x+rankGapX, y, "c2")
	p.middle(x+rankGapX/2, y-22, 12, "f-c2 bold", "all_reduce")
	p.middle(x+rankGapX/2, y-8, 12, "f-soft", fmt.Sprintf("%d per layer", s.reduces))
	if s.gathers > 0 {
		p.middle(x+rankGapX/2, y+18, 12, "f-c2 bold", "all_gather")
		p.middle(x+rankGapX/2, y+32, 12, "f-soft", fmt.Sprintf("%d per step", s.gathers))
	}
}

// legend explains the strips.
func (p *picture) legend(x, y float64) {
	p.text(x, y, 12.5, "f-ink bold", "Of the model, each rank has")
	for i, key := range []struct{ tint, name string }{
		{"c1", "decoder layers, of 30"}, {"c2", "query heads, of 9"}, {"c3", "key-value heads, of 3"}, {"c4", "hidden columns, of 1,536"},
	} {
		at := y + 14 + 21*float64(i)
		p.rect(x, at, 14, 11, 2, "f-"+key.tint)
		p.text(x+22, at+10, 12, "f-ink", key.name)
	}
	p.text(x, y+118, 12, "f-soft", "Ranks of the first layers also have")
	p.text(x, y+134, 12, "f-soft", "the embedding, those of the last")
	p.text(x, y+150, 12, "f-soft", "their part of the head.")
}
