package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
)

// timelineLoad is a small load that illustrates the policy: prompts of several lengths
// that arrive during decoding, and one that shares a prefix with an earlier request.
// docs/images/serving.svg shows it.
var timelineLoad = Load{
	Name: "timeline", Sequences: 4, Pages: 20, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec,
	Requests: func(*rand.Rand) []Request {
		return []Request{
			{Client: 0, Prompt: 150, Output: 26, Text: 1, Stem: 1, Shared: 128},
			{At: 20 * ms, Client: 1, Prompt: 40, Output: 7, Text: 2, Stem: 2},
			{At: 95 * ms, Client: 2, Prompt: 170, Output: 5, Text: 3, Stem: 3},
			{At: 135 * ms, Client: 3, Prompt: 30, Output: 6, Text: 4, Stem: 4},
			{At: 205 * ms, Client: 4, Prompt: 180, Output: 8, Text: 5, Stem: 1, Shared: 128},
		}
	},
}

// A Timeline lists the steps of a run.
type Timeline struct {
	About    string           `json:"about"`
	PageRows int              `json:"page_rows"`
	Pages    int              `json:"pages"`
	Requests []TimelineCaller `json:"requests"`
	Steps    []TimelineStep   `json:"steps"`
}

// A TimelineCaller is a request of the load.
type TimelineCaller struct {
	At     float64 `json:"at_ms"`
	Prompt int     `json:"prompt"`
	Output int     `json:"output"`
}

// A TimelineStep is one step.
type TimelineStep struct {
	At      float64        `json:"at_ms"`
	Took    float64        `json:"took_ms"`
	Parts   []TimelinePart `json:"parts"`
	Waiting []int          `json:"waiting,omitempty"` // requests that have arrived and are in no part
	Used    int            `json:"used_pages"`        // pages used by requests; a shared page counts once
	Kept    int            `json:"kept_pages"`        // pages held only by the prefix cache
}

// A TimelinePart is a request's part of a step.
type TimelinePart struct {
	Request int  `json:"request"`
	Tokens  int  `json:"tokens"`
	Cached  int  `json:"cached,omitempty"` // rows reused from the prefix cache
	Decode  bool `json:"decode,omitempty"` // decodes a token; else a prefill chunk
	Pages   int  `json:"pages"`            // pages that it holds
}

// timeline replays the timeline's load with the engine's policy and undisturbed steps.
func timeline(measured *Latency) *Timeline {
	latency := *measured
	latency.Noise = nil
	load := timelineLoad
	t := &Timeline{
		About: "Steps of a small load under the engine's policy, with step times of tools/simulate/serving/latency.json. " +
			"Written by go run ./tools/simulate/serving --timeline FILE.",
		PageRows: pageRows, Pages: load.Pages,
	}
	for _, q := range load.Requests(nil) {
		t.Requests = append(t.Requests, TimelineCaller{float64(q.At.Microseconds()) / 1e3, q.Prompt, q.Output})
	}
	s := newSimulation(load, Ours(0), &latency, 1)
	s.watch = func(step TimelineStep) { t.Steps = append(t.Steps, step) }
	s.all()
	return t
}

// note describes the next step before it runs.
func (s *simulation) note() TimelineStep {
	step := TimelineStep{At: float64(s.now.Microseconds()) / 1e3}
	busy := map[int]bool{}
	for _, p := range s.batch.Parts {
		q := s.live[p.Request]
		busy[q.index] = true
		cached := 0
		if q.done == 0 {
			cached, _ = s.cached(q)
		}
		step.Parts = append(step.Parts, TimelinePart{q.index, p.Tokens, cached, q.decoding, p.Pages})
	}
	for _, list := range [][]*live{s.waiting, s.live} {
		for _, q := range list {
			if !busy[q.index] {
				step.Waiting = append(step.Waiting, q.index)
			}
		}
	}
	return step
}

// writeTimeline writes the timeline as JSON, one step per line.
func writeTimeline(path string, t *Timeline) error {
	steps := t.Steps
	t.Steps = nil
	head, err := json.Marshal(t)
	if err != nil {
		return err
	}
	text := string(head[:len(head)-len("null}")]) + "[\n"
	for i, s := range steps {
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if text += " " + string(line); i+1 < len(steps) {
			text += ","
		}
		text += "\n"
	}
	return os.WriteFile(path, []byte(text+"]}\n"), 0o644)
}
