//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

type generated struct {
	PromptTokens []int32 `json:"prompt_tokens"`
	Tokens       []int32 `json:"tokens"`
	Text         string  `json:"text"`
	FinishReason string  `json:"finish_reason"`
	Timings      map[string]float64
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	prompt := []int32{1, 12, 36, 3, 40}
	want := devicetest.Greedy(prompt, 12, b.salt)
	if i := slices.Index(want, devicetest.EOS); i >= 0 {
		want = want[:i+1]
	}
	var g generated
	b.must(t, &g, "generate", "--ids", "1,12,36,3,40", "-n", "12", "--json")
	if !slices.Equal(g.Tokens, want) || !slices.Equal(g.PromptTokens, prompt) {
		t.Errorf("tokens %v after %v, expected %v", g.Tokens, g.PromptTokens, want)
	}
	if text := b.tok.Decode(want, true); g.Text != text {
		t.Errorf("text %q, expected %q", g.Text, text)
	}
	for _, k := range []string{"load_s", "prompt_s", "prompt_tok_s", "gen_tok_s"} {
		if _, ok := g.Timings[k]; !ok {
			t.Errorf("timings lack %s", k)
		}
	}
	code, stdout, stderr := b.run(t.Context(), "generate", "--ids", "1,12,36,3,40", "-n", "12")
	if code != 0 || stdout != g.Text+"\n" {
		t.Errorf("exit %d, text %q (%s), expected %q", code, stdout, stderr, g.Text)
	}
}

func TestGenerateStops(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var g generated
	b.must(t, &g, "generate", "--ids", "9,7", "-n", "5", "--json")
	if g.FinishReason != "stop" || !slices.Equal(g.Tokens, []int32{devicetest.EOS}) || g.Text != "" {
		t.Errorf("%+v, expected to stop at once", g)
	}
	b.must(t, &g, "generate", "--ids", "9,7", "-n", "5", "--ignore-eos", "--json")
	if g.FinishReason != "length" || len(g.Tokens) != 5 {
		t.Errorf("%+v, expected five tokens", g)
	}
	g = generated{}
	b.must(t, &g, "generate", "--ids", "9", "-n", "0", "--json")
	if g.FinishReason != "length" || len(g.Tokens) != 0 {
		t.Errorf("%+v, expected none", g)
	}
}

func TestGenerateFillsContext(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	ids := strings.Repeat("9,", devicetest.Context-3) + "9"
	var g generated
	b.must(t, &g, "generate", "--ids", ids, "-n", "50", "--ignore-eos", "--json")
	if g.FinishReason != "length" || len(g.Tokens) != 3 {
		t.Errorf("%d tokens, %s; expected 3 (two more rows, and the token after the last)", len(g.Tokens), g.FinishReason)
	}
}

func TestGeneratePromptText(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	file := filepath.Join(t.TempDir(), "prompt")
	if err := os.WriteFile(file, []byte("Hi you."), 0o644); err != nil {
		t.Fatal(err)
	}
	want := append([]int32{1}, b.tok.Encode("Hi you.", true)...)
	for _, args := range [][]string{{"-p", "Hi you."}, {"-f", file}} {
		var g generated
		b.must(t, &g, append([]string{"generate", "-n", "1", "--json"}, args...)...)
		if !slices.Equal(g.PromptTokens, want) {
			t.Errorf("%v: prompt %v, expected %v", args, g.PromptTokens, want)
		}
	}
}

func TestGenerateSampled(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	args := []string{"generate", "--ids", "9", "-n", "20", "--temp", "1.5", "--top-k", "30", "--top-p", "0.95", "--min-p", "0.01", "--ignore-eos", "--json", "--seed"}
	var one, two, three generated
	b.must(t, &one, append(args, "5")...)
	b.must(t, &two, append(args, "5")...)
	b.must(t, &three, append(args, "6")...)
	if !slices.Equal(one.Tokens, two.Tokens) || slices.Equal(one.Tokens, three.Tokens) {
		t.Errorf("seeds 5, 5, 6 gave %v, %v, %v", one.Tokens, two.Tokens, three.Tokens)
	}
	if slices.Max(one.Tokens) >= devicetest.Vocab {
		t.Error("a padded id was sampled")
	}
}

func TestLogits(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var out struct {
		IDs    []int32
		Logits [][]float32
	}
	b.must(t, &out, "logits", "--ids", "9 10, 11", "--last", "2")
	ids := []int32{9, 10, 11}
	if !slices.Equal(out.IDs, ids) || len(out.Logits) != 2 {
		t.Fatalf("ids %v, %d rows", out.IDs, len(out.Logits))
	}
	for i, row := range out.Logits {
		if !slices.Equal(row, devicetest.Logits(ids[:2+i], b.salt)) {
			t.Errorf("row %d differs", i)
		}
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var out struct{ Hidden [][]float32 }
	b.must(t, &out, "hidden", "--ids", "9,10,11")
	if len(out.Hidden) != 3 || len(out.Hidden[0]) != 4 || out.Hidden[2][0] != 11 || out.Hidden[2][1] != 2 {
		t.Errorf("%v", out.Hidden)
	}
	none := newBinary(t, func(m *manifest.Manifest) { m.Graphs[0].Outputs[1].Name = "other" })
	if code, _, stderr := none.run(t.Context(), "hidden", "--ids", "9"); code != 2 || !strings.Contains(stderr, "hidden") {
		t.Errorf("no such output: exit %d, %s", code, stderr)
	}
}

// TestProfileBeside swaps the dispatch without touching the binary: the fake
// model's fourth hidden column is the table's entry for the step.
func TestProfileBeside(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	entry := func(args ...string) float32 {
		var out struct{ Hidden [][]float32 }
		b.must(t, &out, append([]string{"hidden", "--ids", "9,10,11"}, args...)...)
		return out.Hidden[0][3]
	}
	if got := entry(); got != 0 {
		t.Errorf("default: implementation %v for 3 rows", got)
	}
	profile := `{"format":1,"shapes":[{"n":16,"k":16,"dtype":"f32","rules":[{"rows":1,"impl":"%s"}]}]}`
	write := func(path, impl string) {
		if err := os.WriteFile(path, fmt.Appendf(nil, profile, impl), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(b.program+".profile", "gemm")
	if got := entry(); got != 1 {
		t.Errorf("profile beside the binary: implementation %v", got)
	}
	other := filepath.Join(t.TempDir(), "p")
	write(other, "gemv")
	if got := entry("--profile", other); got != 0 {
		t.Errorf("named profile: implementation %v", got)
	}
	write(other, "magic")
	if code, _, stderr := b.run(t.Context(), "hidden", "--ids", "9", "--profile", other); code != 2 || !strings.Contains(stderr, "gemv, gemm") {
		t.Errorf("unknown implementation: exit %d, %s", code, stderr)
	}
}

func TestTokenize(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("a b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out struct {
		IDs    []int32
		Tokens []string
	}
	b.must(t, &out, "tokenize", "Hi .")
	if !slices.Equal(out.Tokens, []string{"H", "i", "Ġ", "."}) || len(out.IDs) != 4 {
		t.Errorf("%+v", out)
	}
	b.must(t, &out, "tokenize", "-f", file, "--no-special")
	if want := b.tok.Encode("a b\n", false); !slices.Equal(out.IDs, want) {
		t.Errorf("file: %v, expected %v", out.IDs, want)
	}
	b.must(t, &out, "tokenize", "")
	if len(out.IDs) != 0 || out.IDs == nil {
		t.Errorf("empty text: %+v", out)
	}
	var text struct{ Text string }
	b.must(t, &text, "detokenize", "1,12,39", "3", "4", "--skip-special")
	if text.Text != "Hi ." {
		t.Errorf("text %q", text.Text)
	}
	code, stdout, stderr := b.run(t.Context(), "detokenize", "1,123456")
	if code != 2 || stdout != "" || !strings.Contains(stderr, "token id 123456: the vocabulary has ") {
		t.Errorf("an id outside the vocabulary: exit %d, %q %q", code, stdout, stderr)
	}
}

func TestBench(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var rows []struct {
		Test  string
		Batch int
		TokS  struct{ Min, Median, Max float64 } `json:"tok_s"`
		GBS   float64                            `json:"gb_s"`
		Share *float64                           `json:"share_of_bandwidth"`
	}
	b.must(t, &rows, "bench", "--prompt", "20", "--gen", "5", "--batch", "1,3", "--reps", "2", "--json")
	var tests []string
	for _, r := range rows {
		tests = append(tests, fmt.Sprint(r.Test, "/", r.Batch))
		if r.TokS.Min <= 0 || r.TokS.Min > r.TokS.Median || r.TokS.Median > r.TokS.Max || r.GBS <= 0 || r.Share == nil || *r.Share <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"pp20/1", "tg5/1", "pp20/3", "tg5/3"}; !slices.Equal(tests, want) {
		t.Errorf("rows %v, expected %v", tests, want)
	}
	code, stdout, _ := b.run(t.Context(), "bench", "--prompt", "4", "--gen", "0", "--batch", "1", "--reps", "1")
	if code != 0 || !strings.Contains(stdout, "pp4") || strings.Contains(stdout, "tg") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

func TestAblate(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var rows []struct {
		Without, Test string
		Gain          float64 `json:"gain_percent"`
		Low, High     float64
	}
	b.must(t, &rows, "bench", "--ablate", "--prompt", "20", "--gen", "5", "--batch", "2", "--reps", "4", "--threads", "2", "--json")
	if len(rows) != 10 {
		t.Fatalf("%d rows, expected two tests of five choices", len(rows))
	}
	for _, r := range rows {
		if r.Without == "" || r.Gain <= -100 || r.Low > r.Gain || r.Gain > r.High {
			t.Errorf("%+v", r)
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var out struct {
		Name     string
		ISA      string
		Dispatch []struct{ Matmul, Use string }
	}
	b.must(t, &out, "info", "--json")
	if out.Name != "fake" || out.ISA != "portable" || len(out.Dispatch) != 1 || out.Dispatch[0].Use != "gemv, rows>=8: gemm" {
		t.Errorf("%+v", out)
	}
	if code, stdout, _ := b.run(t.Context(), "info", "--ir"); code != 0 || stdout != b.IR {
		t.Errorf("--ir: exit %d, %q", code, stdout)
	}
	if code, stdout, _ := b.run(t.Context(), "info"); code != 0 || !strings.Contains(stdout, "used here") {
		t.Errorf("exit %d, %s", code, stdout)
	}
}

// TestEmbeddedWeights puts the weights behind the binary.
func TestEmbeddedWeights(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	out := filepath.Join(t.TempDir(), "one-file")
	if err := packed.Embed(b.program, b.program+".weights", out); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("the copy cannot be executed: %v", err)
	}
	b.program = out
	var g generated
	b.must(t, &g, "generate", "--ids", "9", "-n", "3", "--json")
	if want := devicetest.Greedy([]int32{9}, 3, b.salt); !slices.Equal(g.Tokens, want) {
		t.Errorf("tokens %v, expected %v", g.Tokens, want)
	}
}

func TestGenerateStrategy(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var plain, got, again generated
	b.must(t, &plain, "generate", "--ids", "9", "-n", "8", "--ignore-eos", "--json")
	b.must(t, &got, "generate", "--ids", "9", "-n", "8", "--ignore-eos", "--json", "--strategy", "greedy")
	if !slices.Equal(got.Tokens, plain.Tokens) {
		t.Errorf("greedy: %v, expected %v", got.Tokens, plain.Tokens)
	}
	args := []string{"generate", "--ids", "9", "-n", "20", "--ignore-eos", "--json", "--seed", "4", "--strategy", "mirostat:tau=3"}
	b.must(t, &got, args...)
	b.must(t, &again, args...)
	if !slices.Equal(got.Tokens, again.Tokens) || len(got.Tokens) != 20 {
		t.Errorf("one seed gave %v and %v", got.Tokens, again.Tokens)
	}
	for want, args := range map[string][]string{
		"mirostat":           {"--strategy", "magic"},
		"parameters of its ": {"--strategy", "top_k", "--top-k", "4"},
	} {
		code, _, stderr := b.run(t.Context(), append([]string{"generate", "--ids", "9"}, args...)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}
