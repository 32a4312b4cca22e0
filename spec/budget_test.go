package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iflowc/iflowc/ir/tensor"
)

func TestParseBudget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Budget{
		"4.5": {Bits: 4.5}, "3": {Bits: 3}, "fit": {Fit: true}, "FIT": {Fit: true}, "loss=1%": {Loss: 0.01}, "loss=0.02": {Loss: 0.02},
		"3GB": {Bytes: 3e9}, "1.5 GiB": {Bytes: 3 << 29}, "700mb": {Bytes: 700e6}, "12b": {Bytes: 12},
	} {
		got, ok, err := ParseBudget(text)
		if !ok || err != nil || got != want {
			t.Errorf("%q: have %+v %v %v, want %+v", text, got, ok, err, want)
		}
		if again, ok, err := ParseBudget(got.String()); !ok || err != nil || again != want {
			t.Errorf("%q: its text %q gives %+v %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{"0.5": "1 to 32", "99": "1 to 32", "0GB": "1 B to", "999999TB": "1 B to", "loss=0%": "above 0", "loss=101%": "at most 100%"} {
		if _, ok, err := ParseBudget(text); !ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have error %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"", "q4", "4bit", "int4", "-3", "3 apples", "loss", "loss=x", "1e9", "nan", "inf"} {
		if _, ok, _ := ParseBudget(text); ok {
			t.Errorf("%q was read as a budget", text)
		}
	}
}

// TestQuantBudget: --quant and quant: accept the same budgets, and --quant wins.
func TestQuantBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, flag string
		typ        tensor.DType
		budget     Budget
		fails      string
	}{
		{text: "quant: 4.5", budget: Budget{Bits: 4.5}},
		{text: "quant: loss=1%", budget: Budget{Loss: 0.01}},
		{text: "quant: fit", flag: "q8", typ: tensor.Q8B32T2},
		{text: "quant: q8", flag: "2GB", budget: Budget{Bytes: 2e9}},
		{text: "quant: 99", fails: "a.yaml:6:8: quant: have 99 bits"},
		{text: "quant: q8", flag: "four", fails: `loss=1% (perplexity)`},
	} {
		s, err := Parse("a.yaml", []byte(small+c.text+"\n"), nil, Options{Quant: c.flag})
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s %s: have error %v, want %q", c.text, c.flag, err, c.fails)
			}
			continue
		}
		if err != nil || s.Quant != c.typ || s.Budget != c.budget {
			t.Errorf("%s %s: have %s %+v %v", c.text, c.flag, s.Quant, s.Budget, err)
		}
	}
}

// TestTypesOfLayers: a key with layers splits its weights, and no others.
func TestTypesOfLayers(t *testing.T) {
	t.Parallel()
	s, err := Parse("a.yaml", []byte(small+"types: {\"w_down[0..1]\": q8, \"dec.{i}.self_attn.wv[1..2]\": q4, wo: q6}\n"), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Resolve(s, parseHeaders(t, smallHeaders))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.WeightTypes()
	if err != nil {
		t.Fatal(err)
	}
	want := []WeightType{{"w_down", tensor.Q8B32T2}, {"wv_1", tensor.Q4TB32}, {"wo", tensor.Q6TB32}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	counts := map[string]int{}
	for _, w := range mod.Weights {
		if len(w.Count) > 0 {
			counts[w.Name] = w.Count[0].Len()
		}
	}
	for name, n := range map[string]int{"w_down": 1, "w_down_1": 1, "wv": 1, "wv_1": 1, "wo": 2, "wq": 2} {
		if counts[name] != n {
			t.Errorf("%s has %d layers, want %d (%v)", name, counts[name], n, counts)
		}
	}
	for weight, want := range map[string]string{"w_down": "w_down", "w_down_1": "w_down", "wo": "wo[0..1]", "embed": "embed"} {
		if got := m.LayersKey(weight, 0, 1); weight != "w_down_1" && got != want {
			t.Errorf("%s: key %q, want %q", weight, got, want)
		}
	}
}
