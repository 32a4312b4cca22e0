package main

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// A Policy schedules requests: Next selects a step's batch, Admit the queued request to
// admit.
type Policy struct {
	Name, About string
	Next        func(*policy.Input, *policy.Batch)
	Admit       func(waiting []policy.Waiting, sequences, pages int, idle bool) int
}

// Ours returns the engine's policy without some of its rules.
func Ours(without policy.Rule) Policy {
	return Policy{
		Name: "iflowc", About: "the engine's policy",
		Next: func(in *policy.Input, out *policy.Batch) {
			in.Objective.Without = without
			policy.Next(in, out)
		},
		Admit: func(w []policy.Waiting, sequences, pages int, idle bool) int {
			return policy.Admit(w, sequences, pages, idle, without)
		},
	}
}

// Policies are the engine's policy and the baselines.
func Policies() []Policy {
	return []Policy{
		Ours(0),
		baseline("fcfs", "prompts in order of arrival, as many as fit, in steps of their own before anything is generated", prefillFirst),
		baseline("budget-512", "vLLM's chunked prefill: each step has 512 tokens, first those generated, then prompts in order of arrival", budget(stepTokens)),
		baseline("budget-64", "the same with 64 tokens", budget(64)),
		baseline("no-chunking", "prompts in order of arrival, each whole in a step beside those that generate", wholePrompts),
	}
}

// FindPolicy returns the policy called name.
func FindPolicy(name string) (Policy, error) {
	names := ""
	for _, p := range Policies() {
		if p.Name == name {
			return p, nil
		}
		names += " " + p.Name
	}
	return Policy{}, fmt.Errorf("no policy %q; there are:%s", name, names)
}

// baseline is a policy that admits in order of arrival.
func baseline(name, about string, next func(*policy.Input, *policy.Batch)) Policy {
	return Policy{
		Name: name, About: about, Next: next,
		Admit: func(w []policy.Waiting, sequences, pages int, idle bool) int {
			if len(w) == 0 || !idle && (w[0].Sequences > sequences || w[0].Pages > pages) {
				return -1
			}
			return 0
		},
	}
}

// A filler fills a batch with parts of requests.
type filler struct {
	in   *policy.Input
	out  *policy.Batch
	left policy.Limits
}

func newFiller(in *policy.Input, out *policy.Batch) *filler {
	out.Parts, out.Short, out.NoDrafts = out.Parts[:0], -1, true
	return &filler{in, out, in.Limits}
}

// add schedules up to n tokens of request i; with whole, all n or none.
func (f *filler) add(i, n int, whole bool) {
	r := &f.in.Requests[i]
	n = min(n, f.left.Tokens, r.Pending())
	if n < 1 || whole && n < r.Pending() {
		return
	}
	from := r.Done + r.Cached
	rows := max(0, from+n-max(r.RowFrom, from))
	pages := max(r.Pages, pagesFor(from+n))
	taken := pages - r.Pages - r.Cached/pageRows + r.CachedPages
	if rows > f.left.Rows {
		return
	}
	if taken > f.left.Pages {
		if f.out.Short < 0 {
			f.out.Short = i
		}
		return
	}
	f.out.Parts = append(f.out.Parts, policy.Part{Request: i, Tokens: n, Rows: rows, Pages: pages})
	f.left.Tokens, f.left.Rows, f.left.Pages = f.left.Tokens-n, f.left.Rows-rows, f.left.Pages-taken
}

// each adds the requests of a kind in order of arrival.
func (f *filler) each(decoding bool, n int, whole bool) {
	for i := range f.in.Requests {
		if (f.in.Requests[i].Pending() == 1) == decoding {
			f.add(i, n, whole)
		}
	}
}

func budget(tokens int) func(*policy.Input, *policy.Batch) {
	return func(in *policy.Input, out *policy.Batch) {
		f := newFiller(in, out)
		f.left.Tokens = tokens
		f.each(true, 1, false)
		f.each(false, tokens, false)
	}
}

// wholePrompts ignores the step's token limit for the first prompt, so that any prompt
// fits.
func wholePrompts(in *policy.Input, out *policy.Batch) {
	f := newFiller(in, out)
	f.each(true, 1, false)
	for i := range in.Requests {
		if r := &in.Requests[i]; r.Pending() > 1 {
			f.left.Tokens = max(f.left.Tokens, r.Pending())
			f.add(i, r.Pending(), true)
			f.left.Tokens = 0
		}
	}
}

func prefillFirst(in *policy.Input, out *policy.Batch) {
	f := newFiller(in, out)
	f.each(false, stepTokens, false)
	if len(f.out.Parts) == 0 {
		f.each(true, 1, false)
	}
}
