package spec

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

// TestMedusaChain runs an autoregressive draft head twice, the second time on the
// state that the first run returned, and compares with torch.
func TestMedusaChain(t *testing.T) {
	raw, err := os.ReadFile("testdata/medusa/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		IDs   []int
		Chain [][]float64 // logits and state
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	m, mod, src, err := medusaModule(t, "  {file: DIR/chain/medusa_lm_head.safetensors, heads: 2}\n")
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Medusa; !d.Chained || d.Heads != 2 || d.Columns != 32 || len(d.Tokens) != 32 {
		t.Fatalf("chained %v, %d heads of %d tokens %v", d.Chained, d.Heads, d.Columns, d.Tokens)
	}
	w := interp.NewWeights(mod, src)
	decoded, err := interp.Run(mod, "decode", &interp.Step{IDs: want.IDs}, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, hidden := len(want.IDs), decoded[1]
	for i, token := range []int{7, 11} {
		ids := make([]int, n)
		ids[n-1] = token
		out, err := interp.Run(mod, "medusa", &interp.Step{IDs: ids, Pos: make([]int, n), OutRows: []int{n - 1}, Extra: map[string]*tensor.Tensor{"hidden": hidden}}, w, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, x := range want.Chain[i] {
			if math.Abs(out[0].F[k]-x) > 2e-4 {
				t.Fatalf("run %d, column %d: %g, want %g", i, k, out[0].F[k], x)
			}
		}
		width := hidden.Shape[1]
		copy(hidden.F[(n-1)*width:], out[0].F[len(out[0].F)-width:])
	}
}

// TestMedusaChainRefuses checks the errors for a token list that does not match the
// matrix and for options that an autoregressive draft head does not support.
func TestMedusaChainRefuses(t *testing.T) {
	file, err := filepath.Abs("testdata/medusa/chain/medusa_lm_head.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	heads, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int, 32)
	for i := range tokens {
		tokens[i] = i
	}
	with := func(at, id int) []int {
		out := slices.Clone(tokens)
		out[at] = id
		return out
	}
	for _, c := range []struct {
		tokens       []int
		option, want string
	}{
		{tokens, "", ""},
		{tokens[:16], "", "lists 16 medusa_tokens"},
		{with(3, 99), "", "medusa_tokens[3] of config.json is 99"},
		{with(3, -1), "", "medusa_tokens[3] of config.json is -1"},
		{with(3, 2), "", "medusa_tokens[3] of config.json is 2"},
		{tokens, ", vocab: 16", "medusa.vocab: the checkpoint has a matrix head.weight"},
		{tokens, ", choices: [1, 2]", "medusa.choices: an autoregressive draft head"},
	} {
		dir := t.TempDir()
		config, err := json.Marshal(map[string]any{"medusa_tokens": c.tokens})
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"config.json": config, "h.safetensors": heads} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, _, err = medusaModule(t, "  {file: "+filepath.Join(dir, "h.safetensors")+c.option+"}\n")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v%s: %v, want %q", c.tokens, c.option, err, c.want)
		}
	}
}
