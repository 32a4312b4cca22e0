package lora

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// delta returns what a packed adapter adds to element (row, col) of a site.
func delta(p *Packed, site int, cols, row, col int) float64 {
	at, sum := p.Sites[site], 0.0
	for r := range at.Rank {
		a := p.Data[at.A+r*roundUp(cols)+col]
		b := p.Data[at.B+row/16*16*at.Rank+r*16+row%16]
		sum += float64(a) * float64(b)
	}
	return sum
}

// stored returns what the pair of an adapter adds to element (row, col) of the stored matrix.
func stored(t *testing.T, a *Adapter, pair, row, col int) float64 {
	t.Helper()
	m := a.Matrices()[pair]
	ma, mb, err := a.Read(pair)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for r := range m.Rank {
		sum += float64(ma[r*m.In+col]) * float64(mb[row*m.Rank+r])
	}
	return m.Scale * sum
}

func part(order, out, in int, names ...string) manifest.SitePart {
	p := manifest.SitePart{Out: out, In: in}
	for _, n := range names {
		p.Names = append(p.Names, manifest.SiteName{Name: n, Order: order})
	}
	return p
}

// TestPack packs a fused matrix for two sites, one of which has rows of a second one too,
// scaled and without its first columns.
func TestPack(t *testing.T) {
	t.Parallel()
	a := open(t, folder(t, `{"peft_type":"LORA","lora_alpha":6,"r":2,"rank_pattern":{"gate":3}}`, slices.Concat(peft("h.0.c_attn", 2, 20, 40), peft("h.0.gate", 3, 24, 8))...))
	second := part(3, 8, 24, "h.0.gate")
	second.FromCol, second.Scale = 4, 0.25
	sites := []manifest.Site{
		{Weight: "q", Rows: 20, Cols: 20, Parts: []manifest.SitePart{part(0, 40, 20, "h.0.c_attn")}},
		{Weight: "other", Rows: 5, Cols: 7, Parts: []manifest.SitePart{part(0, 5, 7, "h.1.gate")}},
		{Weight: "k", Rows: 18, Cols: 20, Parts: []manifest.SitePart{part(1, 40, 20, "blk.0.qkv", "h.0.c_attn"), second}},
	}
	orders := [][]manifest.RowRun{
		{{To: 0, ToStep: 2, From: 39, FromStep: -1, Count: 10}, {To: 1, ToStep: 2, From: 0, FromStep: 3, Count: 10}},
		{{To: 4, ToStep: 1, From: 20, FromStep: 2, Count: 10}},
		nil,
		{{To: 0, ToStep: 1, From: 4, FromStep: 1, Count: 4}, {To: 16, ToStep: 1, From: 0, FromStep: 1, Count: 2}},
	}
	p, err := a.Pack(sites, orders)
	if err != nil {
		t.Fatal(err)
	}
	if size, err := a.Size(sites, orders); err != nil || size != 4*int64(len(p.Data)) {
		t.Errorf("size %d of %d floats: %v", size, len(p.Data), err)
	}
	if p.Sites[0].Rank != 2 || p.Sites[1].Rank != 0 || p.Sites[2].Rank != 5 {
		t.Errorf("%+v", p.Sites)
	}
	for s, site := range sites {
		want := make([]float64, site.Rows*site.Cols)
		add := func(pair, order, fromCol int, scale float64) {
			for _, run := range orders[order] {
				for k := range run.Count {
					for c := range site.Cols {
						want[(run.To+k*run.ToStep)*site.Cols+c] += scale * stored(t, a, pair, run.From+k*run.FromStep, fromCol+c)
					}
				}
			}
		}
		switch s {
		case 0:
			add(0, 0, 0, 1)
		case 2:
			add(0, 1, 0, 1)
			add(1, 3, 4, 0.25)
		}
		for i, w := range want {
			if got := delta(p, s, site.Cols, i/site.Cols, i%site.Cols); math.Abs(got-w) > 1e-5 {
				t.Fatalf("site %d: element %d, %d is %v, want %v", s, i/site.Cols, i%site.Cols, got, w)
			}
		}
	}
	for _, s := range p.Sites {
		if s.A%16 != 0 || s.B%16 != 0 {
			t.Errorf("not aligned: %+v", s)
		}
	}
}

// TestNames finds matrices under the names of other programs.
func TestNames(t *testing.T) {
	t.Parallel()
	n := NewNames([]string{
		"model.layers.0.self_attn.q_proj", "blk.0.attn_q", "model.layers.11.mlp.experts_gate", "lm_head",
		"encoder.layers.0.fc1", "decoder.layers.0.fc1", "bert.pooler.dense", "a.h.0.c_attn", "b.h.0.c_attn",
	})
	for name, want := range map[string]string{
		"model.layers.0.self_attn.q_proj":                "model.layers.0.self_attn.q_proj",
		"layers.0.self_attn.q_proj":                      "model.layers.0.self_attn.q_proj",
		"model.language_model.layers.0.self_attn.q_proj": "model.layers.0.self_attn.q_proj",
		"blk.0.attn_q":                                   "blk.0.attn_q",
		"model.lm_head":                                  "lm_head",
		"pooler.dense":                                   "bert.pooler.dense",
		"model.decoder.layers.0.fc1":                     "decoder.layers.0.fc1",
		"layers.0.fc1":                                   `error can be "encoder.layers.0.fc1" or "decoder.layers.0.fc1"`,
		"c.h.0.c_attn":                                   `error can be "a.h.0.c_attn" or "b.h.0.c_attn"`,
		"classifier.dense":                               "error is no matrix of this model",
		"model.layers.1.self_attn.q_proj":                `error nearest name is "model.layers.0.self_attn.q_proj"`,
		"q_proj":                                         "error is no matrix of this model",
		"model.layers.0.mlp.experts.3.w1":                "error a matrix of experts",
		"model.embed_tokens":                             "error an embedding",
		"":                                               "error is no matrix",
	} {
		got, err := n.Find(name)
		if text, isErr := strings.CutPrefix(want, "error "); isErr {
			if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%q: %q, error %v, want …%s…", name, got, err, text)
			}
		} else if got != want || err != nil {
			t.Errorf("%q: %q %v, want %q", name, got, err, want)
		}
	}
}

// TestPackErrors checks that adapters that do not fit a model are refused.
func TestPackErrors(t *testing.T) {
	t.Parallel()
	site := manifest.Site{Weight: "q", Rows: 8, Cols: 8, Parts: []manifest.SitePart{part(0, 8, 8, "model.layers.0.q", "blk.0.q")}}
	two := site
	two.Parts = append(slices.Clone(site.Parts), part(0, 8, 8, "model.layers.0.k"))
	sites, orders := []manifest.Site{site, two}, [][]manifest.RowRun{{{ToStep: 1, FromStep: 1, Count: 8}}}
	plain := `{"peft_type":"LORA","r":200}`
	for want, path := range map[string]string{
		`"model.layers.1.q", which is no matrix`:             folder(t, plain, peft("model.layers.1.q", 200, 8, 8)...),
		`[8 outputs, 9 inputs] to a matrix of [8, 8]`:        folder(t, plain, peft("model.layers.0.q", 200, 9, 8)...),
		`[9 outputs, 8 inputs] to a matrix of [8, 8]`:        folder(t, plain, peft("layers.0.q", 200, 8, 9)...),
		`changes "model.layers.0.q" twice: as "layers.0.q"`:  folder(t, plain, slices.Concat(peft("x.layers.0.q", 200, 8, 8), peft("layers.0.q", 200, 8, 8))...),
		`change the same matrix`:                             folder(t, plain, slices.Concat(peft("layers.0.q", 200, 8, 8), peft("blk.0.q", 200, 8, 8))...),
		`add up to 400, with "layers.0.k"; want at most 256`: folder(t, plain, slices.Concat(peft("layers.0.q", 200, 8, 8), peft("layers.0.k", 200, 8, 8))...),
	} {
		a := open(t, path)
		_, err := a.Pack(sites, orders)
		if _, sizeErr := a.Size(sites, orders); err == nil || sizeErr == nil || err.Error() != sizeErr.Error() {
			t.Errorf("Pack: %v, Size: %v", err, sizeErr)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("error %v, want %s: …%s…", err, path, want)
		}
	}
}

// TestPackRank packs for a rank that has only a part of the sites.
func TestPackRank(t *testing.T) {
	t.Parallel()
	a := open(t, folder(t, plainConfig, slices.Concat(peft("layers.0.q", 2, 8, 8), peft("layers.1.q", 2, 8, 8))...))
	var sites []manifest.Site
	for _, name := range []string{"model.layers.0.q", "model.layers.1.q"} {
		sites = append(sites, manifest.Site{Weight: "q", Rows: 8, Cols: 8, Parts: []manifest.SitePart{part(0, 8, 8, name)}})
	}
	orders := [][]manifest.RowRun{{{ToStep: 1, FromStep: 1, Count: 8}}}
	whole, err := a.Pack(sites, orders)
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.PackRank(sites[1:], orders, sites)
	if err != nil || len(second.Sites) != 1 || !slices.Equal(second.Data, whole.Data[len(whole.Data)/2:]) {
		t.Errorf("%+v %v", second, err)
	}
	if _, err := a.Pack(sites[1:], orders); err == nil || !strings.Contains(err.Error(), `"layers.0.q"`) {
		t.Errorf("a site that no rank has: %v", err)
	}
}

// TestOverflow checks that the part's scale cannot make numbers infinite.
func TestOverflow(t *testing.T) {
	t.Parallel()
	a := open(t, ggufFile(t, matrix("q.weight.lora_a", tensor.F32, 2, 8), matrix("q.weight.lora_b", tensor.F32, 8, 2)))
	p := part(0, 8, 8, "q")
	p.Scale = math.MaxFloat32
	sites := []manifest.Site{{Weight: "q", Rows: 8, Cols: 8, Parts: []manifest.SitePart{p}}}
	if _, err := a.Pack(sites, [][]manifest.RowRun{{{ToStep: 1, FromStep: 1, Count: 8}}}); err == nil || !strings.Contains(err.Error(), "is not finite with the scale") {
		t.Errorf("error %v", err)
	}
}

// TestUnchanged: a matrix that the model lacks is no error if its B is 0.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	site := manifest.Site{Weight: "q", Rows: 16, Cols: 16, Parts: []manifest.SitePart{{Names: []manifest.SiteName{{Name: "layers.0.q"}}, Out: 16, In: 16}}}
	orders := [][]manifest.RowRun{{{ToStep: 1, FromStep: 1, Count: 16}}}
	other := peft("vision_tower.layers.0.q", 2, 16, 16)
	for _, zero := range []bool{true, false} {
		if zero {
			clear(other[1].Raw)
		} else {
			other[1].Raw[len(other[1].Raw)-1] = 1
		}
		a := open(t, folder(t, `{"peft_type":"LORA","r":2,"lora_alpha":2}`, append(peft("layers.0.q", 2, 16, 16), other...)...))
		p, err := a.Pack([]manifest.Site{site}, orders)
		if (err == nil) != zero {
			t.Errorf("B is zero: %t, error %v", zero, err)
		}
		if err == nil && p.Sites[0].Rank != 2 {
			t.Errorf("rank %d", p.Sites[0].Rank)
		}
	}
}
