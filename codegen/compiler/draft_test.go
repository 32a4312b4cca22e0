package compiler

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// TestDraftsChangeNothing: the logits of drafted tokens, and of those that
// follow accepted ones, are the bits of plain decoding, for every kind of
// attention and type of state.
func TestDraftsChangeNothing(t *testing.T) {
	devicetest.NeedCompiler(t)
	t.Parallel()
	models := familyModels(t)
	type draftCase struct{ model, quant, kv string }
	cases := []draftCase{
		{"", "q8_b32t2", "f16"}, {"", "q4_b64", "q8_b32t2"}, {"", "q8_b32t2", "q4"}, {"", "f16", "bf16"}, {"", "f32", "f32"}, {"", "q3h_b64", "f16"},
		{models["deepseek_v2"], "f32", "f16"}, {models["gemma2"], "f32", "f16"}, {models["bloom"], "f32", "f16"},
		{models["gpt_oss"], "f32", "bf16"}, {models["mixtral"], "f16", "f32"}, {models["t5"], "f32", "f16"}, {models["bart"], "q8_b32t2", "bf16"},
	}
	for _, c := range irtest.Sample(t, 1, cases) {
		t.Run(fmt.Sprint(c.model, " ", c.quant, " ", c.kv), func(t *testing.T) {
			p, err := generate(cmp.Or(c.model, "../../models/demo.yaml"), Options{Quant: c.quant, KV: c.kv})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			m := loaded(t, p)
			for _, opt := range []engine.Options{{Threads: 1, Draft: 20}, {Threads: 2, Draft: 40, MaxTokens: 90, Pages: 7}} {
				draftLikePlain(t, m, opt)
			}
		})
	}
}

// A drafted is a text that is decoded with drafts, some of whose nodes are its
// own tokens.
type drafted struct {
	id    engine.ID
	text  []int32 // all of it
	at    int     // tokens given to the engine
	tree  speculate.Tree
	rows  [][]float32 // of text's tokens, from the prompt's last on
	begin int         // the prompt's length
}

// draftLikePlain decodes three texts side by side and compares the rows of their
// tokens, and of some tokens beside them, with those of plain decoding.
func draftLikePlain(t *testing.T, m engine.Model, opt engine.Options) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(opt.Draft), 4))
	rows := min(m.Manifest.Context, 150)
	opt.MaxSeqs, opt.Context = 3, rows
	e, err := engine.Open(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var texts []*drafted
	for i := range 3 {
		d := &drafted{text: prompt(rows-2*i, i), begin: max(1, min(rows/2, 50+6*i))}
		for j := range d.text {
			d.text[j] %= int32(min(1000, m.Manifest.Vocab))
		}
		d.at = d.begin
		if d.id, err = e.AddQuery(engine.Query{Tokens: d.text[:d.at], Source: sourceOf(m)}); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, d)
	}
	var sides [][]int32 // what nodes beside the texts stand for, and their rows
	var sideRows [][]float32
	for live := 3; live > 0; {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range results {
			d := texts[slices.IndexFunc(texts, func(d *drafted) bool { return d.id == res.ID })]
			if !res.Ready {
				continue
			}
			checkBest(t, res)
			path := d.take(r, res, &sides, &sideRows)
			if d.at == len(d.text) {
				e.Remove(d.id)
				live--
				continue
			}
			d.at++
			if err := e.Advance(d.id, path, d.text[d.at-1]); err != nil {
				t.Fatal(err)
			}
			d.propose(r, r.IntN(opt.Draft+1), int32(min(1000, m.Manifest.Vocab)))
			if err := e.Propose(d.id, d.tree); err != nil {
				t.Fatal(err)
			}
		}
	}
	if st := e.Stats(); st.Accepted == 0 || st.Drafted < 2*st.Accepted {
		t.Errorf("%d of %d drafted tokens were accepted", st.Accepted, st.Drafted)
	}
	compareDrafted(t, m, texts, sides, sideRows)
}

// checkBest compares the argmax tokens that the step found, if it did, with the logits.
func checkBest(t *testing.T, res engine.Result) {
	t.Helper()
	for n := -1; n < res.Drafted; n++ {
		row := res.Node(0, n)
		want := argmax(row)
		if got := res.AppendTop(nil, n, len(row)); len(got) > 0 && got[0].ID != want {
			t.Errorf("node %d: the step found argmax %d, expected %d", n, got[0].ID, want)
		}
		if got := res.AppendTop(nil, n, int(max(want, 0))); len(got) > 0 {
			t.Errorf("node %d: of a vocabulary that ends before %d the argmax is %v", n, want, got)
		}
	}
}

// take keeps the rows of a result and goes along the draft for a while.
func (d *drafted) take(r *rand.Rand, res engine.Result, sides *[][]int32, rows *[][]float32) (path []int) {
	d.rows = append(d.rows, slices.Clone(res.Row(0, res.Rows-1)))
	tree := d.tree.Cut(res.Drafted)
	for node := range tree.Len() {
		if r.IntN(30) > 0 {
			continue
		}
		line := []int32{}
		for n := node; n >= 0; n = int(tree.Parent[n]) {
			line = append(line, tree.Tokens[n])
		}
		slices.Reverse(line)
		*sides = append(*sides, slices.Concat(d.text[:d.at], line))
		*rows = append(*rows, slices.Clone(res.Node(0, node)))
	}
	for node := -1; d.at < len(d.text) && r.IntN(6) > 0; d.at++ {
		if node = tree.Child(node, d.text[d.at]); node < 0 {
			break
		}
		path = append(path, node)
		d.rows = append(d.rows, slices.Clone(res.Node(0, node)))
	}
	return path
}

// propose drafts a random tree of n nodes, or a path, along the text for a
// while.
func (d *drafted) propose(r *rand.Rand, n int, vocab int32) {
	d.tree = speculate.Tree{}
	on := []bool{}
	linear := r.IntN(4) == 0
	for range n {
		i := d.tree.Len()
		parent := i - 1
		if !linear && r.IntN(2) == 0 {
			parent = r.IntN(i+1) - 1
		}
		token := r.Int32N(vocab)
		depth := int32(0)
		if parent >= 0 {
			depth = d.tree.Depths()[parent]
		}
		straight := (parent < 0 || on[parent]) && d.at+int(depth) < len(d.text)
		if straight && r.IntN(5) > 0 {
			token = d.text[d.at+int(depth)]
		}
		if d.tree.Child(parent, token) >= 0 {
			continue
		}
		d.tree.Tokens, d.tree.Parent = append(d.tree.Tokens, token), append(d.tree.Parent, int32(parent))
		on = append(on, straight && token == d.text[d.at+int(depth)])
	}
}

// compareDrafted compares rows with those of plain decoding.
func compareDrafted(t *testing.T, m engine.Model, texts []*drafted, sides [][]int32, rows [][]float32) {
	t.Helper()
	plain := func(all [][]int32) [][]float32 {
		return logitsOf(t, m, engine.Options{Threads: 1, Context: min(m.Manifest.Context, 200)}, all)
	}
	width := len(texts[0].rows[0])
	for i, d := range texts {
		want := plain([][]int32{d.text})[0]
		for j, row := range d.rows {
			at := d.begin - 1 + j
			sameBits(t, fmt.Sprintf("text %d, token %d", i, at), row, want[at*width:(at+1)*width])
		}
	}
	for i, side := range sides {
		if len(side) > m.Manifest.Context {
			continue
		}
		want := plain([][]int32{side})[0]
		sameBits(t, fmt.Sprintf("a drafted token at %d", len(side)-1), rows[i], want[len(want)-width:])
	}
}
