package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// TestRanksFail checks that a job ends at its launcher when a rank cannot start, with an
// error that says why.
func TestRanksFail(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "model")
	iflowc(t, "compile", demoSpec, "--quant", "f32", "--isa", "portable", "--devices", "0;1", "-o", bin).succeed(t)
	story := []string{"generate", "-p", "Once", "-n", "2"}
	for _, c := range []struct {
		name, missing string
		args          []string
		ranks         int
		want          string
	}{
		{"flag", "", []string{"generate", "--nonsense"}, 2, "unknown flag --nonsense"},
		{"shard 0", "0of2", story, 2, "rank 0: "},
		{"shard 1", "1of2", story, 2, "rank 1 of the model: "},
		{"ranks", "", story, 3, "the model is compiled for 2 ranks (0;1), but"},
	} {
		own := filepath.Join(t.TempDir(), "model")
		for _, suffix := range []string{"", ".weights.0of2", ".weights.1of2"} {
			if suffix == ".weights."+c.missing {
				continue
			}
			if err := os.Link(bin+suffix, own+suffix); err != nil {
				t.Fatal(err)
			}
		}
		for _, front := range fronts(c.ranks)[1:] {
			t.Run(c.name+" "+filepath.Base(front[0]), func(t *testing.T) {
				t.Parallel()
				w := slices.Concat(front, []string{own}, c.args)
				got := call(t, mpiEnv, w[0], w[1:]...)
				if got.code == 0 || !strings.Contains(got.stderr, c.want) {
					t.Errorf("exit %d: %s, expected %q", got.code, got.stderr, c.want)
				}
			})
		}
	}
}

// mpiEnv lets OpenMPI start more ranks than there are cores, for any user.
var mpiEnv = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1"}

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
	w := slices.Concat(r.front, []string{r.bin}, args, []string{"--rank-timeout", "5m"})
	return call(t, mpiEnv, w[0], w[1:]...).succeed(t)
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
