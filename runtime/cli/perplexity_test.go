//go:build unix

package cli_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

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
			out = append(out, fakeNLL(prefix, ids[i], salt))
		}
		scored = to
	}
	return out
}

// fakeNLL is the loss of a token after a prefix, by the fake model's formula.
func fakeNLL(prefix []int32, token int32, salt byte) float64 {
	row := devicetest.Logits(prefix, salt)
	shift := 0.0
	if prefix[len(prefix)-1] == devicetest.StopID {
		shift = 1e6
	}
	sum := 0.0
	for _, l := range row {
		sum += math.Exp(float64(l) - shift)
	}
	return math.Log(sum) + shift - float64(row[token])
}

// TestPerplexityChunks compares --protocol llama.cpp with that tool's rule,
// spelled out: of every whole chunk, positions context/2 … context-2 predict
// the token after their own.
func TestPerplexityChunks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(strings.Repeat("The cat sat on a mat. ", 9)), 0o644); err != nil {
		t.Fatal(err)
	}
	const context = 32
	for _, bos := range []bool{true, false} {
		b := newBinary(t, func(m *manifest.Manifest) { m.AddBOS = bos })
		tokens := b.tok.Encode(strings.Repeat("The cat sat on a mat. ", 9), false)
		if bos {
			tokens = append([]int32{1}, tokens...)
		}
		sum, n := 0.0, 0
		for i := range len(tokens) / context {
			chunk := slices.Clone(tokens[i*context : (i+1)*context])
			if bos {
				chunk[0] = 1
			}
			for j := context / 2; j < context-1; j++ {
				sum += fakeNLL(chunk[:j+1], chunk[j+1], b.salt)
				n++
			}
		}
		var out struct {
			NLL    float64
			Tokens int
		}
		b.must(t, &out, "perplexity", file, "--context", fmt.Sprint(context), "--protocol", "llama.cpp", "--json")
		if out.Tokens != n || math.Abs(out.NLL-sum/float64(n)) > 1e-9 {
			t.Errorf("bos %v: %+v, expected %d tokens and nll %v", bos, out, n, sum/float64(n))
		}
		if code, _, stderr := b.run(t.Context(), "perplexity", file, "--context", "500", "--protocol", "llama.cpp"); code != 2 || !strings.Contains(stderr, "expected 500 or more") {
			t.Errorf("a text shorter than a chunk: exit %d, %q", code, stderr)
		}
	}
}

// TestPerplexityAgainst compares with a program that sends the logits of another model:
// the KL divergence, equal top tokens and the ratio of perplexities are those of the
// definition.
func TestPerplexityAgainst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, sent, other := filepath.Join(dir, "text"), filepath.Join(dir, "logits"), filepath.Join(dir, "other")
	text := strings.Repeat("The cat sat on a mat. ", 9)
	b := newBinary(t, func(m *manifest.Manifest) { m.AddBOS = false })
	const context = 32
	want, data := b.divergence(b.tok.Encode(text, false), context)
	for path, text := range map[string]string{file: text, sent: data, other: "#!/bin/sh\nexec cat " + sent + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	type interval struct{ Mean, Low, High float64 }
	var out struct {
		Tokens  int
		Against struct {
			KL    interval
			Same  interval `json:"same_top"`
			Ratio interval `json:"perplexity_ratio"`
		}
	}
	b.must(t, &out, "perplexity", file, "--context", fmt.Sprint(context), "--against", other, "--json")
	for _, c := range []struct {
		got  interval
		want float64
	}{{out.Against.KL, want.kl}, {out.Against.Same, want.same}, {out.Against.Ratio, want.ratio}} {
		if math.Abs(c.got.Mean-c.want) > 1e-6*math.Abs(c.want) || !(c.got.Low < c.want && c.want < c.got.High) {
			t.Errorf("%+v, expected %v within", c.got, c.want)
		}
	}
	if out.Tokens != want.tokens {
		t.Errorf("%d tokens, expected %d", out.Tokens, want.tokens)
	}
	for script, want := range map[string]string{
		"echo 'error: no weights' >&2; exit 1": "no weights", "echo logits of 3 tokens": "3 tokens", "head -c 1000 " + sent: "unexpected EOF",
	} {
		if err := os.WriteFile(other, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := b.run(t.Context(), "perplexity", file, "--context", fmt.Sprint(context), "--against", other); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q; expected an error about %q", script, code, stderr, want)
		}
	}
}

// A divergence is that of a fake model from another one, by the definition.
type divergence struct {
	kl, same, ratio float64
	tokens          int
}

// divergence returns that from the fake model with the next salt, in windows of a text,
// and what the other model's --logits sends.
func (b *fakeBinary) divergence(ids []int32, context int) (d divergence, sent string) {
	data := fmt.Appendf(nil, "logits of %d tokens\n", len(devicetest.Logits([]int32{1}, b.salt)))
	longer := 0.0
	for from := 0; from < len(ids); from += context {
		for i := from + 1; i < min(from+context, len(ids)); i++ {
			own, ref := devicetest.Logits(ids[from:i], b.salt), devicetest.Logits(ids[from:i], b.salt+1)
			for _, l := range ref {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(l))
			}
			p, q := softmax(ref), softmax(own)
			for k := range p {
				if p[k] > 0 {
					d.kl += p[k] * math.Log(p[k]/q[k])
				}
			}
			longer += math.Log(p[ids[i]] / q[ids[i]])
			if slices.Index(own, slices.Max(own)) == slices.Index(ref, slices.Max(ref)) {
				d.same++
			}
			d.tokens++
		}
	}
	n := float64(d.tokens)
	d.kl, d.same, d.ratio = d.kl/n, d.same/n, math.Exp(longer/n)
	return d, string(data)
}

func softmax(logits []float32) []float64 {
	p, sum := make([]float64, len(logits)), 0.0
	top := float64(slices.Max(logits))
	for i, l := range logits {
		p[i] = math.Exp(float64(l) - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// TestPerplexityLogits checks what --logits sends.
func TestPerplexityLogits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("The cat sat."), 0o644); err != nil {
		t.Fatal(err)
	}
	b := newBinary(t, func(m *manifest.Manifest) { m.AddBOS = false })
	ids := b.tok.Encode("The cat sat.", false)
	code, stdout, stderr := b.run(t.Context(), "perplexity", file, "--logits")
	if code != 0 {
		t.Fatal(stderr)
	}
	_, rows, _ := strings.Cut(stdout, "\n")
	for i := 1; i < len(ids); i++ {
		for k, want := range devicetest.Logits(ids[:i], b.salt) {
			if len(rows) < 4 {
				t.Fatalf("row %d ends after %d logits", i, k)
			}
			if got := math.Float32frombits(binary.LittleEndian.Uint32([]byte(rows[:4]))); got != want {
				t.Fatalf("row %d, token %d: %v, want %v", i, k, got, want)
			}
			rows = rows[4:]
		}
	}
	if len(rows) > 0 {
		t.Errorf("%d bytes follow the last row", len(rows))
	}
}

// TestSensitivityErrors: plans that do not fit the binary.
func TestSensitivityErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, plan := filepath.Join(dir, "text"), filepath.Join(dir, "plan")
	if err := os.WriteFile(text, []byte(strings.Repeat("The cat sat on a mat. ", 9)), 0o644); err != nil {
		t.Fatal(err)
	}
	b := newBinary(t, nil)
	for content, want := range map[string]string{
		"{": "unexpected end", `{"tokens": 64, "window": 1}`: "no text", `{"tokens": 64, "window": 32, "noise": 0.1, "units": [{"weights": ["nothing"], "hi": 1}]}`: "no weight of [nothing]",
	} {
		if err := os.WriteFile(plan, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := b.run(t.Context(), "sensitivity", plan, text); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, expected %q", content, code, stderr, want)
		}
	}
}
