package main

import (
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestRanks: the demo model on several devices gives the whole model's logits
// (the same bits where only layers are apart), and its ranks say as many bytes as
// the formula has it: by threads of one process, and as processes under each
// mpirun that is here. One instruction set is enough for that.
func TestRanks(t *testing.T) {
	t.Parallel()
	whole := demo(t)
	const prompt, more = "400,401,402,403,404", 12
	ask := []string{"logits", "--ids", prompt, "--last", "3", "--isa", "portable", "--json"}
	var want struct{ Logits [][]float64 }
	decode(t, call(t, nil, whole, ask...).succeed(t), &want)
	story := []string{"generate", "--ids", prompt, "-n", itoa(more), "--temp", "0", "--ignore-eos", "--speculate", "none", "--isa", "portable", "--json"}
	var known struct{ Tokens []int }
	decode(t, call(t, nil, whole, story...).succeed(t), &known)

	// The demo model has 7 layers of 128 columns and 1536 tokens. A layer by
	// tensor adds up twice; its ranks have half of the rows of the head each.
	const layers, hidden, vocab = 7, 128, 1536
	tokens, outRows := int64(5+more-1), int64(more)
	for _, c := range []struct {
		devices   string
		ranks     int
		tolerance float64
		told      []told // by each rank
	}{
		{"0;1", 2, 0, []told{{0, tokens * hidden * 4}, {0, 0}}},
		{"0&1", 2, 1e-4, slices.Repeat([]told{{tokens*layers*2*hidden*4 + outRows*vocab/2*4, 0}}, 2)},
	} {
		bin := filepath.Join(t.TempDir(), "model")
		iflowc(t, "compile", demoSpec, "--quant", "f32", "--isa", "portable", "--devices", c.devices, "-o", bin).succeed(t)
		for _, front := range fronts(c.ranks) {
			r := &ranked{bin: bin, front: front}
			var got struct{ Logits [][]float64 }
			decode(t, r.call(t, ask), &got)
			if worst := furthest(t, want.Logits, got.Logits); !(worst <= c.tolerance) {
				t.Errorf("%s %v: logits differ by %g", c.devices, front, worst)
			}
			var text struct {
				Tokens  []int
				Timings struct{ Ranks []told }
			}
			decode(t, r.call(t, story), &text)
			if !slices.Equal(text.Tokens, known.Tokens) {
				t.Errorf("%s %v: tokens %v, of the whole model %v", c.devices, front, text.Tokens, known.Tokens)
			}
			if n := len(text.Timings.Ranks); n != c.ranks && (front == nil || n != 1) {
				t.Errorf("%s %v: %d ranks say what they told", c.devices, front, n)
			}
			for k, said := range text.Timings.Ranks {
				if said != c.told[k] {
					t.Errorf("%s %v: rank %d told %v bytes, expected %v", c.devices, front, k, said, c.told[k])
				}
			}
		}
	}
}

// told is the bytes that a rank has told others.
type told struct {
	Exchanged int64 `json:"exchanged_bytes"`
	Sent      int64 `json:"sent_bytes"`
}

// fronts are what may stand in front of a command: nothing, or a launcher that
// is here.
func fronts(ranks int) [][]string {
	list := [][]string{nil}
	for _, run := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		if path, err := exec.LookPath(run); err == nil {
			list = append(list, []string{path, "-n", itoa(ranks)})
		}
	}
	return list
}

// A ranked model is one on several devices, and how it is started.
type ranked struct {
	bin   string
	front []string
}

// call runs a subcommand on all ranks; a loaded machine is no silent rank.
func (r *ranked) call(t *testing.T, args []string) string {
	t.Helper()
	env := []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1"}
	w := slices.Concat(r.front, []string{r.bin}, args, []string{"--rank-timeout", "5m"})
	return call(t, env, w[0], w[1:]...).succeed(t)
}

// furthest is the largest difference between two tables of one shape.
func furthest(t *testing.T, a, b [][]float64) (worst float64) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d rows, expected %d", len(b), len(a))
	}
	for i := range a {
		for k := range a[i] {
			worst = max(worst, math.Abs(a[i][k]-b[i][k]))
		}
	}
	return worst
}
