package main

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func model(t *testing.T) *Latency {
	t.Helper()
	f, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	return &f.Latency
}

// TestDeterministic: a seed gives one run, another seed another.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"agents", "few-pages", "drafts"} {
		load, err := FindLoad(name)
		if err != nil {
			t.Fatal(err)
		}
		l := model(t)
		a, b, c := Run(load, Ours(0), l, 1), Run(load, Ours(0), l, 1), Run(load, Ours(0), l, 2)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: seed 1 gives %+v and %+v", name, a, b)
		}
		if reflect.DeepEqual(a, c) {
			t.Errorf("%s: seeds 1 and 2 give the same run", name)
		}
	}
}

// TestTargets replays every load with the engine's policy, which keeps what it
// promises: nobody starves, and tokens come in time but for what the targets
// allow. (Three seeds: half as many late ones more may be chance.) Each of the
// other policies breaks a target.
func TestTargets(t *testing.T) {
	t.Parallel()
	l := model(t)
	const seeds = 3
	broken := map[string]string{}
	for _, load := range Loads {
		for _, p := range Policies() {
			r := Mean(runs(load, p, l, seeds))
			for _, f := range []struct {
				what string
				bad  bool
			}{
				{"starved", r.Starved > 0},
				{"late ITL", r.LateITL > mayLateITL*1.5},
				{"late TTFT", r.LateTTFT > mayLateTTFT},
			} {
				switch {
				case f.bad && p.Name == "iflowc":
					t.Errorf("%s: %s: %+v", load.Name, f.what, r)
				case f.bad:
					broken[p.Name] += " " + load.Name + ":" + f.what
				}
			}
		}
	}
	for _, p := range Policies()[1:] {
		t.Logf("%s breaks%s", p.Name, broken[p.Name])
		if broken[p.Name] == "" {
			t.Errorf("%s keeps every target: the loads do not tell it from the engine's policy", p.Name)
		}
	}
}

// TestAllServed: every request gets all of its tokens, whatever the policy.
func TestAllServed(t *testing.T) {
	t.Parallel()
	l := model(t)
	for _, load := range Loads {
		tokens := 0
		for _, q := range load.Requests(rand.New(rand.NewPCG(5, 1))) {
			tokens += q.Output
		}
		for _, p := range Policies() {
			r := Run(load, p, l, 5)
			if got := int(math.Round(r.Throughput * r.Seconds)); got != tokens {
				t.Errorf("%s, %s: %d tokens, expected %d", load.Name, p.Name, got, tokens)
			}
		}
	}
}

// TestFit: a fit finds what the steps were drawn from, though every twentieth was
// held up, and refuses steps that do not tell.
func TestFit(t *testing.T) {
	t.Parallel()
	want := Latency{Fixed: 1e-3, PerToken: 3e-4, PerTile: 2e-3}
	var samples []Sample
	for i := range 600 {
		n := 1 + i*7%300
		s := Sample{Tokens: n, Seconds: want.Line(n) * (1 + 0.02*math.Sin(float64(i))), Gap: 4e-4}
		if i%20 == 0 {
			s.Seconds *= 30
		}
		samples = append(samples, s)
	}
	got, err := Fit(samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 16, 40, 300} {
		if r := got.Line(n) / want.Line(n); math.Abs(r-1) > 0.03 {
			t.Errorf("a step of %d tokens: %.2f times what it should be: %+v", n, r, got)
		}
	}
	if _, err := Fit(samples[:10]); err == nil {
		t.Error("ten steps were taken")
	}
	for i := range samples {
		samples[i].Tokens = 1
	}
	if _, err := Fit(samples); err == nil {
		t.Error("steps of one size were taken")
	}
}

// TestSamples reads steps of a trace and the time between them.
func TestSamples(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trace.json")
	text := `{"traceEvents":[{"cat":"region","ts":1,"dur":2},
{"cat":"step","ts":1000,"dur":500,"args":{"tokens":7}},{"cat":"step","ts":1900,"dur":100,"args":{"tokens":1}},
{"cat":"step","ts":90000,"dur":100,"args":{"tokens":1}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Samples(path)
	want := []Sample{{Tokens: 7, Seconds: 5e-4, Gap: 4e-4}, {Tokens: 1, Seconds: 1e-4}, {Tokens: 1, Seconds: 1e-4}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; expected %v", got, err, want)
	}
	for _, bad := range []string{"", "{", `{"traceEvents":[]}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Samples(path); err == nil {
			t.Errorf("%q was taken for a trace", bad)
		}
	}
}

// TestCommand: tables, JSON, and errors that say what there is.
func TestCommand(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run([]string{"--loads", "bursts", "--seeds", "2", "--json"}, &out); err != nil {
		t.Fatal(err)
	}
	var list []Result
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != len(Policies()) || list[0].TTFT.P50 <= 0 {
		t.Errorf("%v: %+v", err, list)
	}
	out.Reset()
	if err := run([]string{"--ablate", "--loads", "long-short", "--seeds", "3", "--rules", "shortest-first"}, &out); err != nil || !strings.Contains(out.String(), "| without shortest-first | all |") {
		t.Errorf("%v: %s", err, out.String())
	}
	for _, c := range []struct{ flags, says string }{
		{"--loads none", "there are: poisson"}, {"--policies none", "there are: iflowc"}, {"--seeds 0", "at least 1"},
		{"--ablate --rules none", "there are: shortest-first"}, {"--fit nothing.json", "nothing.json"},
	} {
		if err := run(strings.Fields(c.flags), &out); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %q", c.flags, err, c.says)
		}
	}
}

// TestShortAlways: beside any number of long prompts a short one has its first
// token within a few steps.
func TestShortAlways(t *testing.T) {
	t.Parallel()
	load := Load{Name: "test", Sequences: 16, Pages: 512, TTFT: time.Second, ITL: time.Second, Starved: time.Minute}
	load.Requests = func(*rand.Rand) (list []Request) {
		for i := range 8 {
			list = append(list, Request{Client: i, Class: "long", Prompt: 1500, Output: 8, Text: i, Stem: i})
		}
		return append(list, Request{At: 300 * ms, Client: 9, Class: "short", Prompt: 20, Output: 8, Text: 9, Stem: 9})
	}
	for _, c := range Run(load, Ours(0), model(t), 1).Classes {
		if c.Name == "short" && c.TTFT.Max > 400 {
			t.Errorf("the short one's first token came after %.0f ms", c.TTFT.Max)
		}
	}
}
