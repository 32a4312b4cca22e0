package spec

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"
)

// A reference computes tiny Llama-like models in float64, directly from their
// equations and without code of the compiler: Vaswani et al. 2017, with RMSNorm
// (Zhang and Sennrich 2019), rotary positions (Su et al. 2021) and gated FFNs
// (Shazeer 2020). Its options are module values that no model of transformers
// uses.
type reference struct {
	t       testing.TB
	tensors func(name string) []float64
	config  map[string]any

	act     func(x float64) float64 // activation of the FFN; nil: SiLU
	factor  bool                    // norms multiply by √width and have no weights
	unit    bool                    // normalize queries and keys to unit length
	experts int                     // number of experts, routed top-2; 0: one dense FFN
}

// newReference reads the model of a folder.
func newReference(t testing.TB, dir string) *reference {
	t.Helper()
	s, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.OpenWeights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	source := storedTensors(set)
	return &reference{t: t, config: s.configFile, tensors: func(name string) []float64 {
		x, err := source(name)
		if err != nil {
			t.Fatal(err)
		}
		return x.F
	}}
}

func (r *reference) size(name string) int { n, _ := number(r.config[name]); return int(n) }

// logits returns the logits of the last n ids.
func (r *reference) logits(ids []int, n int) [][]float64 {
	width := r.size("hidden_size")
	table := r.tensors("model.embed_tokens.weight")
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = append([]float64(nil), table[id*width:][:width]...)
	}
	for l := range r.size("num_hidden_layers") {
		at := fmt.Sprintf("model.layers.%d.", l)
		addTo(x, r.attention(at+"self_attn.", r.norm(x, at+"input_layernorm.weight")))
		h := r.norm(x, at+"post_attention_layernorm.weight")
		for i := range h {
			if r.experts > 0 {
				h[i] = r.mixture(at+"block_sparse_moe.", h[i])
			} else {
				h[i] = r.ffn(r.halves(at+"mlp.gate_proj.weight", at+"mlp.up_proj.weight", at+"mlp.gate_up_proj.weight"), r.tensors(at+"mlp.down_proj.weight"), h[i])
			}
		}
		addTo(x, h)
	}
	x = r.norm(x[len(x)-n:], "model.norm.weight")
	head := table
	if tied, _ := r.config["tie_word_embeddings"].(bool); !tied {
		head = r.tensors("lm_head.weight")
	}
	for i := range x {
		x[i] = times(head, x[i])
	}
	return x
}

func (r *reference) norm(x [][]float64, weight string) [][]float64 {
	eps, _ := number(r.config["rms_norm_eps"])
	out := make([][]float64, len(x))
	for i, row := range x {
		sum := 0.0
		for _, v := range row {
			sum += v * v
		}
		by := 1 / math.Sqrt(sum/float64(len(row))+eps)
		if r.factor {
			by = math.Sqrt(float64(len(row)))
		}
		out[i] = make([]float64, len(row))
		for j, v := range row {
			if out[i][j] = v * by; !r.factor {
				out[i][j] *= r.tensors(weight)[j]
			}
		}
	}
	return out
}

// attention computes causal attention of every row, optionally in a window.
func (r *reference) attention(at string, x [][]float64) [][]float64 {
	heads, kv, dim, window := r.size("num_attention_heads"), r.size("num_key_value_heads"), r.size("head_dim"), r.size("sliding_window")
	if kv == 0 {
		kv = heads
	}
	if dim == 0 {
		dim = r.size("hidden_size") / heads
	}
	if window == 0 {
		window = len(x)
	}
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
	for i, row := range x {
		if r.has(at + "qkv_proj.weight") {
			all := times(r.tensors(at+"qkv_proj.weight"), row)
			q[i], k[i], v[i] = all[:heads*dim], all[heads*dim:(heads+kv)*dim], all[(heads+kv)*dim:]
		} else {
			q[i], k[i], v[i] = times(r.tensors(at+"q_proj.weight"), row), times(r.tensors(at+"k_proj.weight"), row), times(r.tensors(at+"v_proj.weight"), row)
		}
		r.turn(q[i], dim, i)
		r.turn(k[i], dim, i)
	}
	out := make([][]float64, len(x))
	for i := range x {
		var mixed []float64
		for h := range heads {
			g := h / (heads / kv)
			p := make([]float64, 0, i+1)
			from := max(0, i-window+1)
			for j := from; j <= i; j++ {
				p = append(p, dot(q[i][h*dim:][:dim], k[j][g*dim:][:dim])/math.Sqrt(float64(dim)))
			}
			softmax(p)
			sum := make([]float64, dim)
			for j, w := range p {
				for c := range sum {
					sum[c] += w * v[from+j][g*dim+c]
				}
			}
			mixed = append(mixed, sum...)
		}
		out[i] = times(r.tensors(at+"o_proj.weight"), mixed)
	}
	return out
}

// turn normalizes a head if unit is set and applies rotary embedding in halves.
func (r *reference) turn(x []float64, dim, pos int) {
	theta, _ := number(r.config["rope_theta"])
	for h := 0; h < len(x); h += dim {
		head := x[h : h+dim]
		if r.unit {
			by := 1 / math.Sqrt(dot(head, head)+1e-6)
			for i := range head {
				head[i] *= by
			}
		}
		for i := range dim / 2 {
			sin, cos := math.Sincos(float64(pos) * math.Pow(theta, -2*float64(i)/float64(dim)))
			a, b := head[i], head[i+dim/2]
			head[i], head[i+dim/2] = a*cos-b*sin, b*cos+a*sin
		}
	}
}

// ffn computes down·(act(gate·x) ⊙ up·x); gate and up are stored in one matrix.
func (r *reference) ffn(gateUp, down, x []float64) []float64 {
	act := r.act
	if act == nil {
		act = formulas["silu"]
	}
	y := times(gateUp, x)
	half := len(y) / 2
	for i := range half {
		y[i] = act(y[i]) * y[half+i]
	}
	return times(down, y[:half])
}

// mixture routes over the first experts and renormalizes the weights of the best two.
func (r *reference) mixture(at string, x []float64) []float64 {
	p := times(r.tensors(at+"gate.weight"), x)[:r.experts]
	softmax(p)
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return p[order[a]] > p[order[b]] })
	out := make([]float64, len(x))
	for _, e := range order[:2] {
		expert := fmt.Sprintf("%sexperts.%d.", at, e)
		for i, v := range r.ffn(r.halves(expert+"w1.weight", expert+"w3.weight", ""), r.tensors(expert+"w2.weight"), x) {
			out[i] += v * p[e] / (p[order[0]] + p[order[1]])
		}
	}
	return out
}

// halves returns gate and up of an FFN concatenated.
func (r *reference) halves(gate, up, both string) []float64 {
	if both != "" && r.has(both) {
		return r.tensors(both)
	}
	return append(append([]float64(nil), r.tensors(gate)...), r.tensors(up)...)
}

func (r *reference) has(name string) bool {
	return map[string]bool{"qkv_proj.weight": true, "gate_up_proj.weight": true}[lastParts(name)] && r.config["model_type"] == "phi3"
}

func lastParts(name string) string {
	for i, dots := len(name)-1, 0; i >= 0; i-- {
		if name[i] == '.' {
			if dots++; dots == 2 {
				return name[i+1:]
			}
		}
	}
	return name
}

// times multiplies a row-major matrix with len(x) columns by x.
func times(m, x []float64) []float64 {
	out := make([]float64, len(m)/len(x))
	for i := range out {
		out[i] = dot(m[i*len(x):][:len(x)], x)
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func addTo(x, y [][]float64) {
	for i := range x {
		for j := range x[i] {
			x[i][j] += y[i][j]
		}
	}
}

func softmax(p []float64) {
	sum, largest := 0.0, slices.Max(p)
	for i := range p {
		p[i] = math.Exp(p[i] - largest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
}

// formulas maps the words of activation_function to functions.
var formulas = map[string]func(x float64) float64{
	"identity":   func(x float64) float64 { return x },
	"sigmoid":    func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"tanh":       math.Tanh,
	"relu":       func(x float64) float64 { return max(0, x) },
	"relu2":      func(x float64) float64 { return max(0, x) * max(0, x) },
	"silu":       func(x float64) float64 { return x / (1 + math.Exp(-x)) },
	"quick_gelu": func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) },
	"gelu_erf":   func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
	"gelu":       func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
	"elu": func(x float64) float64 {
		if x > 0 {
			return x
		}
		return math.Expm1(x)
	},
}

// TestReference checks that the reference without options agrees with transformers.
func TestReference(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"llama", "phi3", "mixtral"} {
		want := readExpected(t, "testdata/families/"+name)
		r := newReference(t, "testdata/families/"+name)
		if name == "mixtral" {
			r.experts = 4
		}
		var got []float64
		for _, row := range r.logits(want.IDs, len(want.Logits)) {
			got = append(got, row...)
		}
		compare(t, name, got, want.Logits)
	}
}
