//go:build unix

package ranks

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// TestPickers checks that pickers pick each row's token as a sampler does, of those that
// stand for a token, and leave rows that are read, or not valid, to rank 0.
func TestPickers(t *testing.T) {
	t.Parallel()
	const vocab, used, cols, rows = 50, 61, 64, 40
	m := &manifest.Manifest{Vocab: vocab, Graphs: []manifest.Graph{
		{Outputs: []manifest.Output{{Name: "hidden", Rows: "out_rows", Cols: 8, Used: 8}, {Name: "logits", Rows: "out_rows", Cols: cols, Used: used}}},
		{Outputs: []manifest.Output{{Name: "hidden", Rows: "out_rows", Cols: 8, Used: 8}}},
	}}
	cfg := stepSizes(0)
	cfg.MaxOutRows, cfg.Outputs = rows, []device.Array{{Rows: rows, Cols: 8}, {Rows: rows, Cols: cols}}
	s, err := device.NewStep(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	r := rand.New(rand.NewPCG(4, 4))
	s.OutRows = rows
	want := make([]int32, rows)
	for row := range rows {
		logits := s.Out[1][row*cols:][:cols]
		for i := range logits {
			logits[i] = float32(r.NormFloat64() * 3)
		}
		logits[vocab] = 99 // stands for no token
		sampler, err := decode.NewSampler(decode.Settings{Options: decode.Options{Temperature: float64(row % 3), TopP: 0.9, Seed: uint64(row)}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Chosen[row] = device.Choose
		s.Choices[row], _ = sampler.Choice(0)
		switch row % 7 {
		case 3:
			s.Chosen[row], want[row] = device.Read, device.Read
		case 5:
			logits[row], want[row] = float32(math.NaN()), device.Read
		default:
			if want[row], err = sampler.Next(logits[:vocab], nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	make(pickers, 3).choose(m, s)
	for row, token := range s.Chosen[:rows] {
		if token != want[row] {
			t.Errorf("row %d: %d, expected %d", row, token, want[row])
		}
		s.Chosen[row] = device.Choose
	}
	if s.Graph = 1; checkTokens(s, vocab) == nil {
		t.Error("a row without a token was accepted")
	}
	make(pickers, 3).choose(m, s)
	for row, token := range s.Chosen[:rows] {
		if token != device.Read {
			t.Errorf("row %d of a graph without logits: %d", row, token)
		}
	}
	if s.Chosen[2] = vocab; checkTokens(s, vocab) == nil {
		t.Error("a token above the vocabulary was accepted")
	}
}
