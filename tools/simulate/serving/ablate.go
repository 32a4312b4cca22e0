package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// A Change is the effect of a change of the rules on a figure: the mean of the paired
// differences over the seeds, and half the width of its 95 % confidence interval.
type Change struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half"`
}

// Sure reports whether the interval excludes zero.
func (c Change) Sure() bool { return math.Abs(c.Mean) > c.Half }

func (c Change) String() string {
	if !c.Sure() {
		return "·"
	}
	return fmt.Sprintf("%+.1f ±%.1f", c.Mean, c.Half)
}

// changeOf returns the change of paired figures.
func changeOf(diffs []float64) (c Change) {
	n := float64(len(diffs))
	for _, d := range diffs {
		c.Mean += d / n
	}
	sum := 0.0
	for _, d := range diffs {
		sum += (d - c.Mean) * (d - c.Mean)
	}
	if n > 1 {
		c.Half = 1.96 * math.Sqrt(sum/(n-1)/n)
	}
	return c
}

// figures are the metrics that an ablation compares: throughput and times in percent,
// late tokens, late requests and fairness in percentage points, and the number of
// starved requests.
var figures = []struct {
	name string
	diff func(before, after *Result) float64
}{
	{"tok/s %", percent(func(r *Result) float64 { return r.Throughput })},
	{"TTFT p50 %", percent(func(r *Result) float64 { return r.TTFT.P50 })},
	{"TTFT p99 %", percent(func(r *Result) float64 { return r.TTFT.P99 })},
	{"ITL p50 %", percent(func(r *Result) float64 { return r.ITL.P50 })},
	{"ITL p99 %", percent(func(r *Result) float64 { return r.ITL.P99 })},
	{"late TTFT", points(func(r *Result) float64 { return r.LateTTFT })},
	{"late ITL", points(func(r *Result) float64 { return r.LateITL })},
	{"starved", func(b, a *Result) float64 { return float64(a.Starved - b.Starved) }},
	{"fairness", points(func(r *Result) float64 { return r.Fairness })},
}

func percent(of func(*Result) float64) func(before, after *Result) float64 {
	return func(b, a *Result) float64 { return 100 * (of(a)/of(b) - 1) }
}

func points(of func(*Result) float64) func(before, after *Result) float64 {
	return func(b, a *Result) float64 { return 100 * (of(a) - of(b)) }
}

// An Ablation holds the changes of the figures of a load when a rule is switched off,
// or on if it was off. Load "all" is the mean of all loads.
type Ablation struct {
	Rule    string            `json:"rule"`
	Load    string            `json:"load"`
	Changes map[string]Change `json:"changes"`
}

// Ablate runs loads on a number of seeds, with a policy's rules and with each rule
// toggled: off, or on if it is in without.
func Ablate(loads []Load, rules []policy.RuleName, without policy.Rule, latency *Latency, seeds int) (list []Ablation) {
	before := make([][]Result, len(loads))
	for i, load := range loads {
		before[i] = runs(load, Ours(without), latency, seeds)
	}
	for _, rule := range rules {
		sign := "without "
		if without&rule.Rule != 0 {
			sign = "with "
		}
		all := Ablation{sign + rule.Name, "all", map[string]Change{}}
		sums := make([][]float64, len(figures))
		for i := range sums {
			sums[i] = make([]float64, seeds)
		}
		for i, load := range loads {
			after := runs(load, Ours(without^rule.Rule), latency, seeds)
			one := Ablation{all.Rule, load.Name, map[string]Change{}}
			for f, figure := range figures {
				diffs := make([]float64, seeds)
				for seed := range diffs {
					diffs[seed] = figure.diff(&before[i][seed], &after[seed])
					sums[f][seed] += diffs[seed] / float64(len(loads))
				}
				one.Changes[figure.name] = changeOf(diffs)
			}
			list = append(list, one)
		}
		for f, figure := range figures {
			all.Changes[figure.name] = changeOf(sums[f])
		}
		list = append(list, all)
	}
	return list
}

func runs(load Load, p Policy, latency *Latency, seeds int) (list []Result) {
	for seed := range seeds {
		list = append(list, Run(load, p, latency, uint64(seed)))
	}
	return list
}

// PrintAblations writes a Markdown table of the mean of all loads and of the named
// loads. A dot is a change with an interval that includes zero. Rows with only dots are
// omitted.
func PrintAblations(w io.Writer, list []Ablation, each bool) {
	fmt.Fprint(w, "| rule | load |")
	for _, f := range figures {
		fmt.Fprintf(w, " %s |", f.name)
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("---|", len(figures)))
	for _, a := range list {
		some := a.Load == "all"
		for _, c := range a.Changes {
			some = some || each && c.Sure()
		}
		if !some {
			continue
		}
		fmt.Fprintf(w, "| %s | %s |", a.Rule, a.Load)
		for _, f := range figures {
			fmt.Fprintf(w, " %v |", a.Changes[f.name])
		}
		fmt.Fprintln(w)
	}
}
