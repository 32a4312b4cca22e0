//go:build unix

package app_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/app"
	"github.com/iflowc/iflowc/runtime/load/loadtest"
	"github.com/iflowc/iflowc/runtime/manifest"
	"github.com/iflowc/iflowc/runtime/tokenizer"
	"github.com/iflowc/iflowc/runtime/weights"
)

// A binary is a fake per-model binary: what it embeds, and where it lies.
type fakeBinary struct {
	app.Embedded
	manifest *manifest.Manifest
	program  string
	salt     byte
	tok      *tokenizer.Tokenizer
}

// newBinary makes the fake model a binary with weights beside it.
func newBinary(t *testing.T, edit func(*manifest.Manifest)) *fakeBinary {
	t.Helper()
	b := &fakeBinary{manifest: loadtest.Manifest(), program: filepath.Join(t.TempDir(), "fake")}
	b.manifest.AddBOS = true
	b.salt = writeWeights(t, b.program+".weights", b.manifest)
	b.tok = fakeTokenizer(t)
	if edit != nil {
		edit(b.manifest)
	}
	var err error
	if b.Manifest, err = json.Marshal(b.manifest); err != nil {
		t.Fatal(err)
	}
	if b.Tokenizer, err = b.tok.Marshal(); err != nil {
		t.Fatal(err)
	}
	lib, err := os.ReadFile(loadtest.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	b.Libs = map[string][]byte{"lib-portable.so": lib}
	b.IR, b.Spec = "module fake {\n}\n", "name: fake\n"
	if err := os.WriteFile(b.program, []byte("#!program"), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a command line in this process.
func (b *fakeBinary) run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = app.Run(ctx, b.Embedded, app.Process{
		Args: args, Program: b.program, Start: time.Now(),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// must runs a command line that succeeds and decodes its JSON.
func (b *fakeBinary) must(t *testing.T, v any, args ...string) {
	t.Helper()
	code, stdout, stderr := b.run(t.Context(), args...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), v); err != nil {
		t.Fatalf("%v: %v in %q", args, err, stdout)
	}
}

// writeWeights packs one 16×16 tensor, updates the manifest's description and
// returns the data's first byte.
func writeWeights(t *testing.T, path string, m *manifest.Manifest) byte {
	t.Helper()
	head := []byte(`{"w":{"dtype":"F32","shape":[16,16],"data_offsets":[0,1024]}}`)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)
	for i := range 256 {
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(i)+0.1))
	}
	source := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(source, file, 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := weights.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	items := []weights.Item{{Name: "w", Recipe: tensor.Source("w"), DType: tensor.F32, Rows: 16, Cols: 16, Layout: weights.LayoutPanel16}}
	if err := weights.Pack(t.Context(), set, items, path, weights.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := weights.OpenPacked(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m.Weights = nil
	for _, it := range p.Items() {
		m.Weights = append(m.Weights, manifest.Weight{
			Name: it.Name, Index: it.Index, DType: it.DType, Rows: it.Rows, Cols: it.Cols, Layout: it.Layout, Offset: it.Offset, Bytes: it.Bytes,
		})
	}
	data, err := p.Load(true)
	if err != nil {
		t.Fatal(err)
	}
	return data[0]
}

// fakeTokenizer has one token a letter.
func fakeTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "</s>": 2, "Ġ": 3, ".": 4}
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for i, r := range letters {
		vocab[string(r)] = 5 + i
	}
	for i := 5 + len(letters); i < loadtest.Vocab; i++ {
		vocab[fmt.Sprint(i-5-len(letters))] = i
	}
	v, err := json.Marshal(vocab)
	if err != nil {
		t.Fatal(err)
	}
	text := `{"version":"1.0","added_tokens":[{"id":1,"content":"<s>","special":true,"normalized":false},{"id":2,"content":"</s>","special":true,"normalized":false}],
"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"post_processor":null,
"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","unk_token":"<unk>","vocab":` + string(v) + `,"merges":[]}}`
	tok, err := tokenizer.Load(tokenizer.Files{"tokenizer.json": []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

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
	want := loadtest.Greedy(prompt, 12, b.salt)
	if i := slices.Index(want, loadtest.EOS); i >= 0 {
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
	if g.FinishReason != "stop" || !slices.Equal(g.Tokens, []int32{loadtest.EOS}) || g.Text != "" {
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
	ids := strings.Repeat("9,", loadtest.Context-3) + "9"
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
	if slices.Max(one.Tokens) >= loadtest.Vocab {
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
		if !slices.Equal(row, loadtest.Logits(ids[:2+i], b.salt)) {
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
}

// TestPerplexity compares with the definition, computed from the fake model's
// formula, with and without a start token, for windows that overlap or not.
func TestPerplexity(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The cat sat on a mat. ", 9)
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, bos := range []bool{true, false} {
		b := newBinary(t, func(m *manifest.Manifest) { m.AddBOS = bos })
		ids := b.tok.Encode(text, false)
		for _, c := range []struct{ context, stride int }{{32, 32}, {32, 8}, {64, 512}, {500, 500}} {
			nlls := referenceNLL(ids, bos, c.context, c.stride, b.salt)
			sum, sq := 0.0, 0.0
			for _, x := range nlls {
				sum += x
			}
			mean := sum / float64(len(nlls))
			for _, x := range nlls {
				sq += (x - mean) * (x - mean)
			}
			stderr := math.Exp(mean) * math.Sqrt(sq/float64(len(nlls)-1)/float64(len(nlls)))
			var out struct {
				Perplexity, StdErr, NLL float64
				Tokens                  int
			}
			b.must(t, &out, "perplexity", file, "--context", fmt.Sprint(c.context), "--stride", fmt.Sprint(c.stride), "--json")
			if out.Tokens != len(nlls) || math.Abs(out.NLL-mean) > 1e-9 || math.Abs(out.Perplexity-math.Exp(mean)) > 1e-6*out.Perplexity || math.Abs(out.StdErr-stderr) > 1e-6*stderr {
				t.Errorf("bos %v %+v: %+v, expected %d tokens, nll %v, stderr %v", bos, c, out, len(nlls), mean, stderr)
			}
		}
	}
}

// referenceNLL scores each token from the longest prefix its window gives it.
func referenceNLL(ids []int32, bos bool, context, stride int, salt byte) []float64 {
	size := context
	var start []int32
	if bos {
		size, start = context-1, []int32{1}
	}
	stride = min(stride, size)
	var out []float64
	scored := 0
	for from := 0; scored < len(ids); from += stride {
		to := min(from+size, len(ids))
		for i := scored; i < to; i++ {
			prefix := append(slices.Clone(start), ids[from:i]...)
			if len(prefix) == 0 {
				continue
			}
			row := loadtest.Logits(prefix, salt)
			sum := 0.0
			for _, l := range row {
				sum += math.Exp(float64(l) - 1e6*map[bool]float64{true: 1}[prefix[len(prefix)-1] == loadtest.StopID])
			}
			shift := 1e6 * map[bool]float64{true: 1}[prefix[len(prefix)-1] == loadtest.StopID]
			out = append(out, math.Log(sum)+shift-float64(row[ids[i]]))
		}
		scored = to
	}
	return out
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

func TestInfo(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	var out struct {
		Name     string
		ISA      string
		Dispatch []struct{ Site, Use string }
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
	if err := app.EmbedWeights(b.program, b.program+".weights", out); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("the copy cannot be executed: %v", err)
	}
	b.program = out
	var g generated
	b.must(t, &g, "generate", "--ids", "9", "-n", "3", "--json")
	if want := loadtest.Greedy([]int32{9}, 3, b.salt); !slices.Equal(g.Tokens, want) {
		t.Errorf("tokens %v, expected %v", g.Tokens, want)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	long := strings.Repeat("9,", loadtest.Context) + "9"
	empty := newBinary(t, nil)
	if err := os.Remove(empty.program + ".weights"); err != nil {
		t.Fatal(err)
	}
	other := newBinary(t, func(m *manifest.Manifest) { m.Weights[0].Rows = 32 })
	blank := newBinary(t, nil)
	blank.Embedded.Tokenizer = nil
	for _, c := range []struct {
		name string
		b    *fakeBinary
		args string
		code int
		want string
	}{
		{"no verb", b, "", 2, "expected one of"},
		{"unknown verb", b, "dance", 2, "dance"},
		{"unknown flag", b, "generate --nope", 2, "nope"},
		{"no prompt", b, "generate", 2, "exactly one of"},
		{"two prompts", b, "generate -p a --ids 1", 2, "exactly one of"},
		{"not a number", b, "logits --ids 1,x", 2, `"x"`},
		{"id out of range", b, "logits --ids 61", 2, "61"},
		{"negative id", b, "logits --ids=-3", 2, `"-3"`},
		{"long prompt", b, "generate --ids " + long, 2, "513 tokens, the model's context holds 512"},
		{"bad temperature", b, "generate --ids 1 --temp=-1", 2, "temperature"},
		{"bad threads", b, "generate --ids 1 --threads=-1", 2, "--threads"},
		{"missing file", b, "generate -f /nonexistent/prompt", 2, "/nonexistent/prompt"},
		{"NaN when sampling", b, "generate --ids 60", 1, "NaN"},
		{"NaN in logits", b, "logits --ids 60", 1, "NaN"},
		{"unknown instruction set", b, "logits --ids 1 --isa z80", 2, "portable"},
		{"no weights", empty, "logits --ids 1", 2, "--weights"},
		{"other weights", other, "logits --ids 1", 2, "another model"},
		{"no tokenizer", blank, "generate -p a", 2, "--ids"},
		{"context over the model's", b, "perplexity x --context 513", 2, "513"},
		{"batch", b, "bench --batch 0", 2, "--batch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := c.b.run(t.Context(), strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d, %q; expected %d and %q", code, stderr, c.code, c.want)
			}
			if strings.Count(strings.TrimSpace(stderr), "\n") > 0 {
				t.Errorf("more than one line: %q", stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	for _, args := range [][]string{{"--help"}, {"generate", "--help"}} {
		code, stdout, stderr := b.run(t.Context(), args...)
		if code != 0 || !strings.Contains(stdout, "Usage") || stderr != "" {
			t.Errorf("%v: exit %d, %q %q", args, code, stdout, stderr)
		}
	}
}

// A cancelWriter cancels on the first write.
type cancelWriter struct {
	once   sync.Once
	cancel func()
	bytes.Buffer
}

func (w *cancelWriter) Write(b []byte) (int, error) {
	w.once.Do(w.cancel)
	return w.Buffer.Write(b)
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	out := &cancelWriter{cancel: cancel}
	var errs bytes.Buffer
	code := app.Run(ctx, b.Embedded, app.Process{Args: []string{"generate", "--ids", "9", "-n", "500", "--ignore-eos"}, Program: b.program, Stdout: out, Stderr: &errs})
	if code != 130 || errs.String() != "interrupted\n" {
		t.Errorf("exit %d, %q", code, errs.String())
	}
	if !strings.HasSuffix(out.String(), "\n") {
		t.Error("the line is not ended")
	}
}
