//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/artifact/sensitivity"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// sensitivityCmd measures for the compiler what errors of each matrix cost. The binary is
// one in f16.
type sensitivityCmd struct {
	Plan        string `arg:"" type:"path" help:"JSON file with the matrices."`
	File        string `arg:"" type:"path" help:"Text file."`
	engineFlags `embed:""`
}

// maxReference is the maximum number of logits kept of the model without errors (256 MB).
const maxReference = 64 << 20

// Run gives each unit an error and compares the logits with those without it.
func (c *sensitivityCmd) Run(ctx context.Context, m *model) error {
	var plan sensitivity.Plan
	data, err := os.ReadFile(c.Plan)
	if err == nil {
		err = json.Unmarshal(data, &plan)
	}
	if err != nil {
		return wrong(err)
	}
	c.Device = "cpu" // whose weights are in this process' memory
	m.prefetch(&c.engineFlags)
	text, err := readText("", c.File)
	if err != nil {
		return err
	}
	t, err := m.tokenizer()
	if err != nil {
		return err
	}
	s := &sensitivityRun{model: m}
	ids := t.Encode(text, false)
	plan.Window = min(plan.Window, m.manifest.Context)
	if plan.Window < 2 || plan.Tokens < 1 || len(ids) == 0 {
		return wrong(fmt.Errorf("%s: no text to measure on", c.File))
	}
	all := cutWindows(ids, m.startToken(), plan.Window, plan.Window)
	for i, n := 0, min(len(all), max(1, plan.Tokens/plan.Window)); i < n; i++ { // from all of the text
		s.windows = append(s.windows, all[i*len(all)/n])
	}
	s.rows = min(plan.Window-1, maxReference/m.manifest.Vocab/len(s.windows))
	if s.rows < 1 {
		return wrong(fmt.Errorf("%d windows with a vocabulary of %d need too much memory", len(s.windows), m.manifest.Vocab))
	}
	graph, err := m.graphWith("sensitivity", "logits")
	if err != nil {
		return err
	}
	if _, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: graph, Context: plan.Window, MaxOutRows: min(perplexityRows, plan.Window)}); err != nil {
		return err
	}
	if s.mem, err = m.packed.Load(false); err != nil {
		return err
	}
	out, err := s.measure(ctx, &plan)
	if err != nil {
		return err
	}
	return writeJSON(m.Stdout, out)
}

// A sensitivityRun holds the model and its logits without errors.
type sensitivityRun struct {
	*model
	windows []window
	rows    int       // scored tokens of a window, the last ones
	mem     []byte    // the loaded weights
	logP    []float32 // without errors, of each scored token
	pass    int
}

// measure runs the text once without errors, once for each unit, and once for each error
// of all units.
func (s *sensitivityRun) measure(ctx context.Context, plan *sensitivity.Plan) (*sensitivity.Result, error) {
	if _, err := s.run(ctx); err != nil {
		return nil, err
	}
	out := &sensitivity.Result{Tokens: len(s.logP) / s.manifest.Vocab}
	bar := newProgress(s.Stderr, "matrices measured", len(plan.Units)+len(plan.Curve))
	for i, u := range plan.Units {
		var saved []byte
		err := s.each(&u, func(_ *packed.Item, mem []byte) error {
			saved = append(saved, mem...)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if err := s.perturb(&u, plan.Noise, i); err != nil {
			return nil, err
		}
		kl, err := s.run(ctx)
		if err != nil {
			return nil, err
		}
		out.Units = append(out.Units, kl)
		_ = s.each(&u, func(_ *packed.Item, mem []byte) error {
			saved = saved[copy(mem, saved):]
			return nil
		})
		bar.step(i + 1)
	}
	before := 0.0
	for i, noise := range plan.Curve {
		// Independent errors add up in squares, and those before increased the weights'.
		more := math.Sqrt(max(0, noise*noise-before*before) / (1 + before*before))
		for j, u := range plan.Units {
			if err := s.perturb(&u, more, (i+1)*len(plan.Units)+j); err != nil {
				return nil, err
			}
		}
		before = noise
		kl, err := s.run(ctx)
		if err != nil {
			return nil, err
		}
		out.Curve = append(out.Curve, kl)
		bar.step(len(plan.Units) + i + 1)
	}
	bar.end()
	return out, nil
}

// each calls f with the matrices of a unit and their bytes.
func (s *sensitivityRun) each(u *sensitivity.Unit, f func(it *packed.Item, mem []byte) error) error {
	items, found := s.packed.Items(), false
	for i := range items {
		if it := &items[i]; u.Has(it.Name, it.Index) {
			found = true
			if err := f(it, s.mem[it.Offset:][:it.Bytes]); err != nil {
				return err
			}
		}
	}
	if !found {
		return wrong(fmt.Errorf("the model has no weight of %v[%d..%d]", u.Weights, u.Lo, u.Hi))
	}
	return nil
}

func (s *sensitivityRun) perturb(u *sensitivity.Unit, noise float64, seed int) error {
	n := uint64(seed) << 32
	return s.each(u, func(it *packed.Item, mem []byte) error {
		n++
		return it.Perturb(mem, noise, n)
	})
}

// run computes the logits of the text. The first call keeps them; others return the mean
// KL divergence from those.
func (s *sensitivityRun) run(ctx context.Context) (float64, error) {
	s.pass++
	logits, vocab := s.eng.Output("logits"), s.manifest.Vocab
	first, at, sum := s.logP == nil, 0, 0.0
	for _, w := range s.windows {
		q := engine.Query{Tokens: w.tokens, Last: min(s.rows, len(w.tokens)), PrefixScope: fmt.Sprint("pass ", s.pass)}
		err := s.model.each(ctx, q, func(r engine.Result) error {
			if first {
				s.logP = append(s.logP, make([]float32, r.Rows*vocab)...)
			}
			kl := make([]float64, r.Rows)
			parallel(r.Rows, func(i int) {
				ref, row := s.logP[at+i*vocab:][:vocab], r.Row(logits, i)[:vocab]
				total, top, _ := normalize(row)
				shift := math.Log(total) + float64(top)
				if !first {
					kl[i] = klDivergence(ref, 0, row, shift)
					return
				}
				for j, l := range row {
					ref[j] = float32(float64(l) - shift)
				}
				kl[i] = total // not a number if a logit is not
			})
			at += r.Rows * vocab
			for _, x := range kl {
				sum += x
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if math.IsNaN(sum) {
		return 0, decode.ErrNaN
	}
	return sum / float64(at/vocab), nil
}
