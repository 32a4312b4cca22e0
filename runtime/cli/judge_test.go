//go:build unix

package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// TestJudge: what logits mean depends on the task of config.json.
func TestJudge(t *testing.T) {
	t.Parallel()
	half := 1 / (1 + math.Exp(-1.0))
	for _, c := range []struct {
		problem string
		row     []float32
		label   string
		scores  []float64
	}{
		{"", []float32{0, 1}, "good", []float64{1 - half, half}},
		{"single_label_classification", []float32{1, 0}, "bad", []float64{half, 1 - half}},
		{"multi_label_classification", []float32{1, 0}, "bad", []float64{half, 0.5}},
		{"regression", []float32{-2.5}, "bad", []float64{-2.5}},
		{"", []float32{1}, "bad", []float64{half}},
		{"", []float32{0, 0, 9}, "LABEL_2", nil},
	} {
		m := &model{manifest: &manifest.Manifest{Labels: []string{"bad", "good"}, Problem: c.problem}}
		v, err := m.judge(c.row)
		if err != nil || v.Label != c.label {
			t.Errorf("%q %v: label %q, want %q (%v)", c.problem, c.row, v.Label, c.label, err)
		}
		for i, want := range c.scores {
			if math.Abs(v.Scores[i]-want) > 1e-6 {
				t.Errorf("%q %v: scores %v, want %v", c.problem, c.row, v.Scores, c.scores)
			}
		}
	}
	for activation, want := range map[string]float64{"Identity": -3, "Sigmoid": 1 / (1 + math.Exp(3)), "Tanh": math.Tanh(-3)} {
		m := &model{manifest: &manifest.Manifest{Activation: activation}}
		if v, err := m.judge([]float32{-3}); err != nil || math.Abs(v.Scores[0]-want) > 1e-6 {
			t.Errorf("%s: %v, want %v (%v)", activation, v.Scores, want, err)
		}
		if v, err := m.judge([]float32{0, 0}); err != nil || v.Scores[0] != 0.5 {
			t.Errorf("%s of two labels: %v (%v)", activation, v.Scores, err)
		}
	}
	m := &model{manifest: &manifest.Manifest{Activation: "GELU"}}
	if _, err := m.judge([]float32{1}); err == nil || !strings.Contains(err.Error(), "Identity, Sigmoid and Tanh") {
		t.Errorf("an unknown activation: %v", err)
	}
	m = &model{manifest: &manifest.Manifest{}}
	if _, err := m.judge([]float32{float32(math.NaN())}); err == nil {
		t.Error("NaN: no error")
	}
}

// TestSettle: the model's files say how texts become vectors unless the call does.
func TestSettle(t *testing.T) {
	t.Parallel()
	files := &manifest.Embedding{Pooling: "cls", Normalize: true}
	for _, c := range []struct {
		files     *manifest.Embedding
		pooling   string
		want      string
		normalize bool
		fails     bool
	}{
		{nil, "", "mean", false, false}, {files, "", "cls", true, false}, {files, "last", "last", false, false},
		{&manifest.Embedding{Pooling: "mean", Missing: "Dense"}, "", "", false, true},
		{&manifest.Embedding{Pooling: "mean", Missing: "Dense"}, "mean", "mean", false, false},
	} {
		cmd := embedCmd{Pooling: c.pooling}
		_, err := cmd.resolve(&model{manifest: &manifest.Manifest{Embedding: c.files}})
		if (err != nil) != c.fails || err == nil && (cmd.Pooling != c.want || cmd.Normalize != c.normalize) {
			t.Errorf("%+v: %q, %t, %v", c, cmd.Pooling, cmd.Normalize, err)
		}
	}
}
