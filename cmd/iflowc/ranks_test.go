package main

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
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
		{"0;1", 2, 0, []told{{Sent: tokens * hidden * 4}, {}}},
		{"0&1", 2, 1e-4, slices.Repeat([]told{{Exchanged: tokens*layers*2*hidden*4 + outRows*vocab/2*4}}, 2)},
	} {
		bin := compiled(t, append([]string{"--devices", c.devices}, demoFlags...)...)
		list := fronts(c.ranks)
		for _, front := range append(list[:1:1], irtest.Sample(t, 1, list[1:])...) {
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
			checkTold(t, c.devices, r, text.Timings.Ranks, c.told, more)
			if front != nil && c.devices == "0;1" {
				compareSampling(t, r, whole)
				compareServing(t, r, whole)
			}
		}
	}
}

// checkTold compares what ranks say that they told with what is expected of each
// for a number of greedy tokens. Of processes, only rank 0 says it.
func checkTold(t *testing.T, devices string, r *ranked, said, want []told, n int64) {
	t.Helper()
	if len(said) != len(want) && (r.front == nil || len(said) != 1) {
		t.Errorf("%s %v: %d ranks say what they told", devices, r.front, len(said))
	}
	for k, got := range said {
		expected := want[k]
		if r.front != nil {
			expected.Steps = stepBytes(5, n, devices == "0;1")
		}
		if r.front != nil && devices == "0;1" {
			expected.Results = 4 * n
		}
		if got != expected {
			t.Errorf("%s %v: rank %d told %v bytes, expected %v", devices, r.front, k, got, expected)
		}
	}
}

// stepBytes is the size of the messages of a prompt and of each of n-1 more
// tokens. A message has 21 words, and 4 for each token. Another tells that the
// token is chosen greedily.
func stepBytes(prompt, n int64, chosen bool) int64 {
	words := 21*n + 4*(prompt+n-1)
	if chosen {
		words += n
	}
	return 4 * words
}

// TestRanksFail checks that a job ends at its launcher when a rank cannot start, with an
// error that says why.
func TestRanksFail(t *testing.T) {
	t.Parallel()
	if len(fronts(2)) == 1 {
		t.Skip("no mpirun: install OpenMPI or MPICH (openmpi-bin, mpich)")
	}
	bin := compiled(t, append([]string{"--devices", "0;1"}, demoFlags...)...)
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
				got := call(t, mpiEnv(t), w[0], w[1:]...)
				if got.code == 0 || !strings.Contains(got.stderr, c.want) {
					t.Errorf("exit %d: %s, expected %q", got.code, got.stderr, c.want)
				}
			})
		}
	}
}

// told is the bytes that a rank has told others, and that rank 0 has sent and
// received otherwise.
type told struct {
	Exchanged int64 `json:"exchanged_bytes"`
	Sent      int64 `json:"sent_bytes"`
	Steps     int64 `json:"step_bytes"`
	Results   int64 `json:"result_bytes"`
}

// compareSampling: the first stage and the last one, which are processes, choose
// the same tokens as one process. The manifest's formula has the size of the
// results.
func compareSampling(t *testing.T, r *ranked, whole string) {
	t.Helper()
	var info struct{ Partition manifest.Partition }
	decode(t, call(t, nil, r.bin, "info", "--json").succeed(t), &info)
	traffic := info.Partition.Ranks[1].Traffic[0]
	type sampling struct {
		args   string
		chosen bool
	}
	for _, c := range irtest.Sample(t, 3, []sampling{
		{"--temp 0.8 --top-k 20 --seed 3", true},
		{"--temp 0.9 --top-p 0.9 --min-p 0.02 --seed 4", true},
		{"--temp 1.2 --seed 5", true},
		{"--temp 1 --typical 0.9 --tfs 0.95", true},
		{"--temp 0.8 --seed 6 --repeat-penalty 1.2", false},
		{"--mirostat 2 --seed 7", false},
		{"--temp 0.8 --top-p 0.95 --seed 9 --speculate lookup", true},
	}) {
		args := append([]string{"generate", "--ids", "400,401,402,400,401,402,400", "-n", "20", "--ignore-eos", "--isa", "portable", "--json"}, strings.Fields(c.args)...)
		if !slices.Contains(args, "--speculate") {
			args = append(args, "--speculate", "none")
		}
		type text struct {
			Tokens  []int
			Timings struct {
				Drafted int
				Ranks   []told
			}
		}
		var want, got text
		decode(t, call(t, nil, whole, args...).succeed(t), &want)
		decode(t, r.call(t, args), &got)
		if !slices.Equal(got.Tokens, want.Tokens) {
			t.Errorf("%v %s: tokens %v, of one process %v", r.front, c.args, got.Tokens, want.Tokens)
		}
		if got.Timings.Drafted > 0 {
			continue // the number of output rows depends on the draft
		}
		rows := len(got.Tokens)
		chosen := 0
		if c.chosen {
			chosen = rows
		}
		if n, expected := got.Timings.Ranks[0].Results, traffic.Results(7+rows-1, rows, 1, chosen); n != expected || expected == 0 {
			t.Errorf("%v %s: %d bytes of results, expected %d", r.front, c.args, n, expected)
		}
	}
}

// served are requests that are served at once. The last stage chooses the tokens
// of some of them.
var served = []string{
	`{"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}`,
	`{"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0.9, "top_p": 0.9, "min_p": 0.02, "seed": 4}`,
	`{"prompt": "A cat", "max_tokens": 16, "temperature": 1.1, "seed": 5, "n": 3}`,
	`{"prompt": "A dog", "max_tokens": 16, "temperature": 0, "n": 2}`,
	`{"prompt": "A dog", "max_tokens": 12, "temperature": 0.8, "seed": 6, "logprobs": 2}`,
	`{"prompt": "The sun was", "max_tokens": 8, "temperature": 0, "echo": true, "logprobs": 1}`,
	`{"prompt": "The sun was", "max_tokens": 12, "temperature": 0.8, "seed": 7, "frequency_penalty": 0.5}`,
	`{"prompt": "The sun was", "max_tokens": 12, "temperature": 1, "seed": 8, "top_k": 40, "logit_bias": {"40": -2}}`,
	`{"prompt": "One: ", "max_tokens": 12, "temperature": 0.7, "seed": 9, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": ["yes", "no"]}}}}`,
	`{"prompt": "A cat and a dog and a cat and a", "max_tokens": 24, "temperature": 1, "top_p": 0.95, "seed": 10}`,
}

// compareServing: a service whose stages are processes gives the same choices as
// one process.
func compareServing(t *testing.T, r *ranked, whole string) {
	t.Helper()
	args := []string{"serve", "--port", "0", "--log", "none", "--isa", "portable"}
	w := slices.Concat(r.front[1:], []string{r.bin}, args, []string{"--rank-timeout", "5m"})
	ranks := exec.Command(r.front[0], w...)
	ranks.Env = append(os.Environ(), mpiEnv(t)...)
	addresses := []string{listening(t, exec.Command(whole, args...)), listening(t, ranks)}
	got := make([][]string, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		got[i] = make([]string, len(served))
		for k, body := range served {
			all.Go(func() { got[i][k] = choicesOf(address+"/v1/completions", body) })
		}
	}
	all.Wait()
	for k, body := range served {
		if got[0][k] != got[1][k] || !strings.Contains(got[0][k], "text") {
			t.Errorf("%v %s: %s, of one process %s", r.front, body, got[1][k], got[0][k])
		}
	}
	resp, err := http.Get(addresses[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	for _, name := range []string{"iflowc_step_bytes_total ", "iflowc_result_bytes_total "} {
		_, after, found := strings.Cut(string(text), "\n"+name)
		if value, _, _ := strings.Cut(after, "\n"); !found || value == "0" || err != nil {
			t.Errorf("%v: %s%s, %v", r.front, name, value, err)
		}
	}
}

// choicesOf returns the choices of a response as JSON, or what is wrong.
func choicesOf(url, body string) string {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var answer struct{ Choices, Error json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err.Error()
	}
	return string(answer.Choices) + string(answer.Error)
}

// mpiEnv lets mpirun start as many ranks as it is told to, with a folder of its own: Open
// MPI's sessions share one, which each removes at its end while another may make it.
func mpiEnv(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpi") // t.TempDir is too long for the names of sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_orte_tmpdir_base=" + dir}
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
	return call(t, mpiEnv(t), w[0], w[1:]...).succeed(t)
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
