//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A viewRank is one rank of a partitioned model: its layers, its weights and its
// communication.
type viewRank struct {
	Device  string        `json:"device"`
	Stage   int           `json:"stage"`
	TPRank  int           `json:"tp_rank"`
	TPSize  int           `json:"tp_size"`
	Lo      int           `json:"lo"` // decoder layers lo ≤ l < hi
	Hi      int           `json:"hi"`
	Bytes   int64         `json:"bytes"` // of the packed weights
	State   int64         `json:"state"` // KV cache bytes per token
	Shards  []viewShard   `json:"shards"`
	Traffic []viewTraffic `json:"traffic"`
}

// A viewShard is a rank's part of a weight.
type viewShard struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Count int    `json:"count"` // elements of an array
	Bytes int64  `json:"bytes"`
}

// A viewTraffic is the communication of a rank in a step of a graph.
type viewTraffic struct {
	Graph string `json:"graph"`
	manifest.Traffic
}

// ofRank adds a partitioned model: the stages up to the partition, the ranks, and
// the later stages of the program of rank c.Rank. It returns the module and the
// code of that rank.
func (d *viewData) ofRank(c *viewCmd, m *compiler.Model, docs map[string]string) (*ir.Module, *codegen.CPUModel, error) {
	lowered, err := m.Lower()
	if err != nil {
		return nil, nil, err
	}
	whole, err := m.OneDevice(passes.Options{Limit: -1})
	if err != nil {
		return nil, nil, err
	}
	var stages []viewStage
	rank := -1
	see := func(_ int, name string, mod *ir.Module) {
		switch {
		case name == "lower": // the first pass of each rank
			rank++
			name = "project"
		case name == passes.Partition.Name:
			return
		}
		if rank == c.Rank {
			stages = append(stages, viewStage{name, docs[name], mod.String()})
		}
	}
	docs["project"] = fmt.Sprintf("The program of rank %d (iflowc view --rank N shows the program of rank N).", c.Rank)
	ranks, part, err := m.Ranks(whole, passes.Options{Limit: -1, Dump: see})
	if err != nil {
		return nil, nil, err
	}
	if c.Rank < 0 || c.Rank >= len(ranks) {
		return nil, nil, usageError{fmt.Errorf("--rank %d: %s has ranks 0 to %d", c.Rank, m.Spec.Devices, len(ranks)-1)}
	}
	d.Stages = append([]viewStage{
		{"lower", docs["lower"], lowered.String()}, {passes.Partition.Name, docs[passes.Partition.Name], part.String()},
	}, stages...)
	for _, r := range ranks {
		d.Ranks = append(d.Ranks, rankOf(r))
	}
	return ranks[c.Rank].Module, ranks[c.Rank].CPU, nil
}

// rankOf summarizes a rank.
func rankOf(r *compiler.Rank) viewRank {
	v := viewRank{Device: strings.TrimPrefix(r.Device, "dev"), Stage: r.Stage, TPRank: r.TPRank, TPSize: r.TPSize, Lo: r.Lo, Hi: r.Hi}
	for _, w := range r.CPU.Manifest.Weights {
		v.Bytes += w.Bytes
		i := slices.IndexFunc(v.Shards, func(s viewShard) bool { return s.Name == w.Name })
		if i < 0 {
			i = len(v.Shards)
			v.Shards = append(v.Shards, viewShard{Name: w.Name, Type: fmt.Sprintf("%s[%d, %d]", w.DType, w.Rows, w.Cols)})
		}
		v.Shards[i].Bytes += w.Bytes
		v.Shards[i].Count++
	}
	for _, s := range r.CPU.Manifest.States {
		v.State += s.PageBytes * int64(s.Count) / int64(max(s.PageRows, 1))
	}
	for i, t := range r.CPU.Traffic {
		v.Traffic = append(v.Traffic, viewTraffic{r.Module.Graphs[i].Name, t})
	}
	return v
}

// program returns the module after the last pass, and its code. The code is nil if
// it cannot be generated; Origin then has the reason.
func (d *viewData) program(c *viewCmd, m *compiler.Model) (*ir.Module, *codegen.CPUModel, error) {
	docs := map[string]string{"lower": "The graph of the model spec, before any pass."}
	for _, p := range passes.Pipeline {
		docs[p.Name] = p.Doc
	}
	if m.Partitioned() {
		return d.ofRank(c, m, docs)
	}
	if c.Rank != 0 {
		return nil, nil, usageError{fmt.Errorf("--rank %d: without --devices there is only rank 0", c.Rank)}
	}
	see := func(_ int, name string, mod *ir.Module) {
		d.Stages = append(d.Stages, viewStage{name, docs[name], mod.String()})
	}
	mod, err := m.Module(passes.Options{Limit: -1, Dump: see})
	if err != nil {
		return nil, nil, err
	}
	cpu, err := m.Code(mod)
	if err != nil {
		d.Origin = "no code: " + err.Error()
		return mod, nil, nil
	}
	return mod, cpu, nil
}
