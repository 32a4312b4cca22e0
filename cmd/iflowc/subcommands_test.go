package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/templates"
)

// keys lists the keys of a JSON object in order.
func keys(t *testing.T, text json.RawMessage) []string {
	t.Helper()
	var m map[string]json.RawMessage
	decode(t, string(text), &m)
	return slices.Sorted(maps.Keys(m))
}

// has fails unless all names are among the keys of an object.
func has(t *testing.T, what string, object json.RawMessage, names ...string) {
	t.Helper()
	have := keys(t, object)
	for _, n := range names {
		if !slices.Contains(have, n) {
			t.Errorf("%s: no key %q among %v", what, n, have)
		}
	}
}

// TestJSONKeys holds the binary's subcommands to the documents that scripts rely on.
func TestJSONKeys(t *testing.T) {
	t.Parallel()
	bin := demo(t)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("The little fox ran to the river. ", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		call string
		keys []string
	}{
		{"generate -p Once -n 3 --json", []string{"prompt_tokens", "tokens", "text", "finish_reason", "timings"}},
		{"logits --ids 1,2,3 --json", []string{"ids", "logits"}},
		{"tokenize Once --json", []string{"ids", "tokens"}},
		{"detokenize 585,654 --json", []string{"text"}},
		{"perplexity " + text + " --context 64 --stride 64 --chunks 2 --json", []string{"perplexity", "stderr", "tokens", "nll"}},
		{"info --json", []string{"name", "weight_bytes", "isa", "threads", "dispatch"}},
	} {
		out := call(t, nil, bin, strings.Fields(c.call)...).succeed(t)
		has(t, c.call, json.RawMessage(out), c.keys...)
	}
	var gen map[string]json.RawMessage
	decode(t, call(t, nil, bin, "generate", "-p", "Once", "-n", "3", "--json").succeed(t), &gen)
	has(t, "timings", gen["timings"], "load_s", "prompt_s", "prompt_tok_s", "gen_tok_s")
}

// TestKVTypes: the types that a specification may give to keys and values are
// those that attention has kernels for.
func TestKVTypes(t *testing.T) {
	t.Parallel()
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	for dt := tensor.F32; dt < dtype.Count; dt++ {
		if have := len(cat.Candidates("attention", dt)) > 0; have != spec.KVType(dt) {
			t.Errorf("%v: attention has a kernel: %v, a specification may ask for it: %v", dt, have, spec.KVType(dt))
		}
	}
}

// TestBenchRows: bench prints a row a test and batch, with its shares of what
// the machine can do.
func TestBenchRows(t *testing.T) {
	t.Parallel()
	out := call(t, nil, demo(t), "bench", "--prompt", "16", "--gen", "4", "--reps", "1", "--batch", "1,2", "--json").succeed(t)
	var rows []json.RawMessage
	if json.Unmarshal([]byte(out), &rows) != nil {
		var doc struct {
			Rows []json.RawMessage `json:"rows"`
		}
		decode(t, out, &doc)
		rows = doc.Rows
	}
	var tests []string
	for _, r := range rows {
		has(t, "row", r, "test", "batch", "tok_s", "gb_s", "share_of_bandwidth", "share_of_peak", "share_of_roofline")
		var row struct {
			Test string `json:"test"`
			Rate struct {
				Min, Median, Max float64
			} `json:"tok_s"`
			Roofline float64 `json:"share_of_roofline"`
		}
		decode(t, string(r), &row)
		tests = append(tests, row.Test)
		if row.Roofline <= 0 {
			t.Errorf("%s: %g of the roofline", row.Test, row.Roofline)
		}
		if !(row.Rate.Min > 0 && row.Rate.Min <= row.Rate.Median && row.Rate.Median <= row.Rate.Max) {
			t.Errorf("%s: %+v tokens a second", row.Test, row.Rate)
		}
	}
	for _, want := range []string{"pp16", "tg4"} {
		if !slices.Contains(tests, want) {
			t.Errorf("no row %s among %v", want, tests)
		}
	}
}

// TestGenerate: text streams, sampling repeats by its seed, and the answer in
// JSON is the streamed one.
func TestGenerate(t *testing.T) {
	t.Parallel()
	bin := demo(t)
	sampled := []string{"generate", "-p", "The little fox", "-n", "12", "--temp", "0.8", "--top-k", "40", "--top-p", "0.95", "--seed", "7"}
	first := call(t, nil, bin, sampled...).succeed(t)
	if again := call(t, nil, bin, append(sampled, "--threads", "1")...).succeed(t); again != first {
		t.Errorf("the same seed gave %q, then %q", first, again)
	}
	var doc struct {
		Text   string `json:"text"`
		Tokens []int  `json:"tokens"`
		Finish string `json:"finish_reason"`
	}
	decode(t, call(t, nil, bin, append(sampled, "--json")...).succeed(t), &doc)
	if strings.TrimSpace(doc.Text) != strings.TrimSpace(first) || len(doc.Tokens) != 12 || doc.Finish != "length" {
		t.Errorf("in JSON %+v, streamed %q", doc, first)
	}
}

// TestBinaryAlone: the binary needs neither Go nor a C compiler nor the build
// cache, and finds its weights beside it wherever both are.
func TestBinaryAlone(t *testing.T) {
	t.Parallel()
	bin, dir := demo(t), t.TempDir()
	for _, ext := range []string{"", ".weights"} {
		data, err := os.ReadFile(bin + ext)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "moved"+ext), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=", "HOME=" + dir, "XDG_CACHE_HOME=" + dir, "IFLOWC_CACHE=" + filepath.Join(dir, "none")}
	out := call(t, env, filepath.Join(dir, "moved"), "generate", "-p", "Once upon a time", "-n", "8", "--temp", "0").succeed(t)
	if want := call(t, nil, bin, "generate", "-p", "Once upon a time", "-n", "8", "--temp", "0").succeed(t); out != want {
		t.Errorf("%q, beside the compiler %q", out, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "none", "*")); len(left) != 0 {
		t.Errorf("running left files behind: %v", left)
	}
}
