package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// flags are the flags of the command.
type flags struct {
	loads, policies, rules, without string
	fit, held, about, timeline      string
	seeds                           int
	ablate, each, json              bool
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "serving:", err)
		os.Exit(1)
	}
}

// run runs the command with its arguments.
func run(args []string, out io.Writer) error {
	var c flags
	f := flag.NewFlagSet("serving", flag.ContinueOnError)
	f.StringVar(&c.loads, "loads", "", "loads to replay, separated by commas (default all)")
	f.StringVar(&c.policies, "policies", "", "policies to run (default all)")
	f.IntVar(&c.seeds, "seeds", 5, "seeds of each load")
	f.BoolVar(&c.ablate, "ablate", false, "run the engine's policy without each of its rules")
	f.BoolVar(&c.each, "each", false, "with --ablate: print each load too")
	f.StringVar(&c.rules, "rules", "", "rules to switch off with --ablate (default all)")
	f.StringVar(&c.without, "without", "", "rules that the engine's policy does without; --ablate switches these on")
	f.BoolVar(&c.json, "json", false, "print one JSON document")
	f.StringVar(&c.fit, "fit", "", "print a step-time model fitted to these files of serve --trace")
	f.StringVar(&c.held, "held-out", "", "test the model of --fit on these")
	f.StringVar(&c.about, "about", "", "how the files of --fit were made")
	f.StringVar(&c.timeline, "timeline", "", "write the steps of a small load to this JSON file, for docs/images/serving.svg")
	if err := f.Parse(args); err != nil {
		return err
	}
	if c.seeds < 1 {
		return fmt.Errorf("--seeds %d: expected at least 1", c.seeds)
	}
	if c.fit != "" {
		fitted, err := FitFiles(c.about, split(c.fit), split(c.held))
		if err != nil {
			return err
		}
		return printJSON(out, fitted)
	}
	if c.timeline != "" {
		model, err := Measured()
		if err != nil {
			return err
		}
		return writeTimeline(c.timeline, timeline(&model.Latency))
	}
	return c.replay(out)
}

// replay runs the policies on the loads, or the ablations.
func (c *flags) replay(out io.Writer) error {
	model, err := Measured()
	if err != nil {
		return err
	}
	loads, err := pick(c.loads, FindLoad, Loads)
	if err != nil {
		return err
	}
	off, err := pick(c.without, policy.FindRule, nil)
	if err != nil {
		return err
	}
	if c.ablate {
		rules, err := pick(c.rules, policy.FindRule, policy.Rules)
		if err != nil {
			return err
		}
		list := Ablate(loads, rules, union(off), &model.Latency, c.seeds)
		if c.json {
			return printJSON(out, list)
		}
		PrintAblations(out, list, c.each)
		return nil
	}
	policies, err := pick(c.policies, FindPolicy, Policies())
	if err != nil {
		return err
	}
	var results []Result
	for _, load := range loads {
		for _, p := range policies {
			if p.Name == "iflowc" {
				p = Ours(union(off))
			}
			results = append(results, Mean(runs(load, p, &model.Latency, c.seeds)))
		}
	}
	if c.json {
		return printJSON(out, results)
	}
	PrintResults(out, results)
	return nil
}

func union(rules []policy.RuleName) (all policy.Rule) {
	for _, r := range rules {
		all |= r.Rule
	}
	return all
}

// pick returns the items named by a comma-separated list; "": all.
func pick[T any](names string, find func(string) (T, error), all []T) (list []T, err error) {
	if names == "" {
		return all, nil
	}
	for _, name := range split(names) {
		one, err := find(name)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func split(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// PrintResults writes a Markdown table.
func PrintResults(w io.Writer, list []Result) {
	fmt.Fprintln(w, "| load | policy | tok/s | TTFT p50 ms | p99 | ITL p50 ms | p99 | max | late TTFT % | late ITL % | starved | fairness |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range list {
		fmt.Fprintf(w, "| %s | %s | %.0f | %.0f | %.0f | %.1f | %.1f | %.0f | %.1f | %.2f | %d | %.3f |\n", r.Load, r.Policy, r.Throughput,
			r.TTFT.P50, r.TTFT.P99, r.ITL.P50, r.ITL.P99, r.ITL.Max, 100*r.LateTTFT, 100*r.LateITL, r.Starved, r.Fairness)
	}
}

// Mean returns the mean of several runs of one load and policy; counts are summed.
func Mean(list []Result) Result {
	m := list[0]
	n := float64(len(list))
	m.Classes = nil
	m.Seconds, m.Fairness, m.Steps, m.Preempted, m.Summary = 0, 0, 0, 0, Summary{}
	add := func(to *Spread, s Spread) {
		to.P50, to.P90, to.P99, to.Max = to.P50+s.P50/n, to.P90+s.P90/n, to.P99+s.P99/n, to.Max+s.Max/n
	}
	plus := func(to *Summary, s *Summary) {
		to.Requests, to.Starved = to.Requests+s.Requests, to.Starved+s.Starved
		to.LateTTFT, to.LateITL, to.Throughput = to.LateTTFT+s.LateTTFT/n, to.LateITL+s.LateITL/n, to.Throughput+s.Throughput/n
		add(&to.TTFT, s.TTFT)
		add(&to.ITL, s.ITL)
	}
	for i, r := range list {
		m.Seconds, m.Fairness = m.Seconds+r.Seconds/n, m.Fairness+r.Fairness/n
		m.Steps, m.Preempted = m.Steps+r.Steps, m.Preempted+r.Preempted
		plus(&m.Summary, &r.Summary)
		for j := range r.Classes {
			if i == 0 {
				m.Classes = append(m.Classes, Class{Name: r.Classes[j].Name})
			}
			plus(&m.Classes[j].Summary, &r.Classes[j].Summary)
		}
	}
	return m
}
