//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/cli"
)

// newAdapted returns a binary of a model that takes adapters, and a folder with the
// adapters one, two and three.
func newAdapted(t *testing.T) (*fakeBinary, string) {
	t.Helper()
	dir := t.TempDir()
	for i, name := range []string{"one", "two", "three"} {
		devicetest.WriteAdapter(t, filepath.Join(dir, name), i+1)
	}
	return newBinary(t, func(m *manifest.Manifest) { devicetest.WithSites(m) }), dir
}

// TestGenerateAdapter checks that commands compute with the adapter of --lora.
func TestGenerateAdapter(t *testing.T) {
	t.Parallel()
	b, dir := newAdapted(t)
	prompt := []int32{1, 12, 36, 3, 40}
	for arg, n := range map[string]int{"one": 1, "x=two": 2} {
		name, path, ok := strings.Cut(arg, "=")
		if arg = filepath.Join(dir, name); ok {
			arg = name + "=" + filepath.Join(dir, path)
		}
		want := devicetest.GreedyWith(n, prompt, 12, b.salt)
		for _, more := range [][]string{nil, {"--speculate", "lookup"}} {
			var g generated
			b.must(t, &g, append([]string{"generate", "--ids", "1,12,36,3,40", "-n", "12", "--ignore-eos", "--json", "--lora", arg}, more...)...)
			if !slices.Equal(g.Tokens, want) {
				t.Errorf("%s %v: tokens %v, expected %v", arg, more, g.Tokens, want)
			}
		}
		var beams, plain struct{ Choices []struct{ Tokens []int32 } }
		b.must(t, &beams, "generate", "--ids", "1,12,36", "-n", "5", "--strategy", "beam:beams=3", "--json", "--lora", arg)
		b.must(t, &plain, "generate", "--ids", "1,12,36", "-n", "5", "--strategy", "beam:beams=3", "--json")
		if len(beams.Choices) == 0 || slices.Equal(beams.Choices[0].Tokens, plain.Choices[0].Tokens) {
			t.Errorf("%s: beam search without the adapter: %v", arg, beams)
		}
		var out struct{ Logits [][]float32 }
		b.must(t, &out, "logits", "--ids", "1,12,36", "--lora", arg)
		if row := devicetest.Logits(devicetest.Shifted([]int32{1, 12, 36}, n), b.salt); !slices.Equal(out.Logits[0], row) {
			t.Errorf("%s: logits %v, expected %v", arg, out.Logits[0], row)
		}
	}
}

// TestChatAdapter switches adapters in a chat.
func TestChatAdapter(t *testing.T) {
	t.Parallel()
	b, dir := newAdapted(t)
	answer := func(n int) string {
		tokens := devicetest.GreedyWith(n, b.tok.Encode("uHello.a", false), 9, b.salt)
		if at := slices.Index(tokens, devicetest.EOS); at >= 0 {
			tokens = tokens[:at]
		}
		return b.tok.Decode(tokens, true) + "\n"
	}
	code, stdout, stderr := b.chat(t, "Hello\n/reset\n/lora b\nHello\n/reset\n/lora none\nHello\n/reset\n/lora c\n/lora a\nHello\n", "--template", lettersTemplate, "-n", "9",
		"--lora", "a="+filepath.Join(dir, "one"), "--lora", "b="+filepath.Join(dir, "two"))
	if want := answer(1) + answer(2) + answer(0) + answer(1); code != 0 || stdout != want {
		t.Errorf("exit %d, got %q, expected %q: %s", code, stdout, want, stderr)
	}
	if !strings.Contains(stderr, "no adapter has this name; choose one of none, a, b") {
		t.Errorf("an unknown adapter: %s", stderr)
	}
}

// TestAdapterErrors checks the errors of --lora and of serve's flags.
func TestAdapterErrors(t *testing.T) {
	t.Parallel()
	b, dir := newAdapted(t)
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for want, args := range map[string][]string{
		"--against measure without adapters":   {"bench", "--ablate", "--lora", one},
		"expected one adapter":                 {"generate", "--ids", "9", "--lora", one, "--lora", two},
		"--lora /missing: stat /missing":       {"generate", "--ids", "9", "--lora", "/missing"},
		"is already the name":                  {"serve", "--port", "0", "--lora", "fake=" + one},
		"a name of at most 128 bytes":          {"serve", "--port", "0", "--lora", strings.Repeat("a", 129) + "=" + one},
		"already the name of a model or":       {"serve", "--port", "0", "--lora", "a=" + one, "--lora", "A=" + two},
		"already the name of a model":          {"serve", "--port", "0", "--alias", "a", "--lora", "a=" + one},
		"an adapter needs a name":              {"serve", "--port", "0", "--lora", "=" + one},
		"--lora-memory 100: expected a number": {"serve", "--port", "0", "--lora", one, "--lora-memory", "100"},
		"only keys with operator: true":        {"serve", "--port", "0", "--lora-dir", dir},
	} {
		if code, _, stderr := b.run(t.Context(), args...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %s, expected %s", args, code, stderr, want)
		}
	}
	var info struct {
		Adapters []struct {
			Name                  string
			Rank, Matrices, Bytes int
		}
	}
	if b.must(t, &info, "info", "--json", "--lora", one, "--lora", "b="+two); len(info.Adapters) != 2 || info.Adapters[0].Rank != 1 || info.Adapters[0].Matrices != 1 || info.Adapters[0].Bytes != 128 || info.Adapters[1].Name != "b" {
		t.Errorf("info: %+v", info)
	}
	plain := newBinary(t, nil)
	if code, _, stderr := plain.run(t.Context(), "generate", "--ids", "9", "--lora", one); code != 2 || !strings.Contains(stderr, "fake has no matrices that adapters can change") {
		t.Errorf("a model without sites: exit %d, %s", code, stderr)
	}
}

// serve starts the subcommand serve. It returns the service's address, and what it wrote
// before it was ready.
func (b *fakeBinary) serve(t *testing.T, args ...string) (url, said string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, b.Embedded, cli.Process{
			Args: append([]string{"serve", "--port", "0", "--log", "none"}, args...), Program: b.program, Start: time.Now(), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: w,
		})
		w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if _, at, ok := strings.Cut(lines.Text(), "listening at "); ok {
			go io.Copy(io.Discard, r)
			url, _, _ = strings.Cut(at, " ")
			return url, said
		}
	}
	t.Fatalf("serve ended: %s", said)
	return "", ""
}

// post sends JSON with the key O.
func post(t *testing.T, url, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "O")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// TestServeAdapters checks adapters of --lora and of --lora-dir in a service.
func TestServeAdapters(t *testing.T) {
	t.Parallel()
	b, dir := newAdapted(t)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("- {name: op, key: O, operator: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, said := b.serve(t, "--keys", keys, "--lora-dir", dir, "--lora", "a="+filepath.Join(dir, "one"), "--lora", filepath.Join(dir, "two"), "--lora-memory", "300")
	if !strings.Contains(said, "adapters 0.0 MB") {
		t.Errorf("said %q", said)
	}
	send := func(path, body string) (int, string) { return post(t, url+path, body) }
	complete := func(model string, n int) {
		t.Helper()
		status, body := send("/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":[12,36,3],"max_tokens":8,"temperature":0,"ignore_eos":true}`, model))
		text, _ := json.Marshal(b.tok.Decode(devicetest.GreedyWith(n, []int32{12, 36, 3}, 8, b.salt), true))
		if status != 200 || !strings.Contains(body, string(text)) {
			t.Errorf("%s: %d %s, expected %s", model, status, body, text)
		}
	}
	complete("fake", 0)
	complete("a", 1)
	complete("two", 2)
	if status, body := send("/v1/load_lora_adapter", `{"lora_name":"c","lora_path":"three"}`); status != 507 {
		t.Errorf("beyond the memory: %d %s", status, body)
	}
	if status, body := send("/v1/unload_lora_adapter", `{"lora_name":"a"}`); status != 200 {
		t.Errorf("unload: %d %s", status, body)
	}
	if status, body := send("/v1/load_lora_adapter", `{"lora_name":"c","lora_path":"three"}`); status != 200 {
		t.Errorf("load: %d %s", status, body)
	}
	complete("c", 3)
	complete("two", 2)
}

// TestEncoderAdapters checks embeddings, classes and masks of an encoder with an adapter, by
// the commands and by a service.
func TestEncoderAdapters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	devicetest.WriteAdapter(t, dir, 3)
	b := newBinary(t, func(m *manifest.Manifest) {
		become(devicetest.Encoder())(m)
		devicetest.WithSites(m)
	})
	ids := []int32{9, 10, 11}
	var hidden struct{ Hidden [][]float32 }
	b.must(t, &hidden, "hidden", "--ids", "9,10,11", "--lora", dir)
	if want := devicetest.Encode(devicetest.Shifted(ids, 3), nil, b.salt); hidden.Hidden[0][3] != want {
		t.Errorf("hidden states %v, expected %v", hidden.Hidden[0][3], want)
	}
	var logits struct{ Logits [][]float32 }
	b.must(t, &logits, "logits", "--ids", "9,10,11", "--lora", dir)
	if want := devicetest.Masked(devicetest.Shifted(ids, 3), nil, 2, b.salt); !slices.Equal(logits.Logits[0], want) {
		t.Errorf("logits %v, expected %v", logits.Logits[0], want)
	}
	var plain, with struct{ Embeddings [][]float32 }
	b.must(t, &plain, "embed", "--ids", "9,10,11", "--normalize")
	b.must(t, &with, "embed", "--ids", "9,10,11", "--normalize", "--lora", dir)
	url, _ := b.serve(t, "--lora", "x="+dir)
	for model, want := range map[string][]float32{"fake": plain.Embeddings[0], "x": with.Embeddings[0]} {
		var got struct {
			Model string
			Data  []struct{ Embedding []float32 }
		}
		status, body := post(t, url+"/v1/embeddings", fmt.Sprintf(`{"model":%q,"input":[[9,10,11]]}`, model))
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.Model != model || len(want) == 0 || !slices.Equal(got.Data[0].Embedding, want) {
			t.Errorf("%s: %d %s, expected %v", model, status, body, want)
		}
	}
	if slices.Equal(plain.Embeddings[0], with.Embeddings[0]) {
		t.Error("the adapter changes no embedding")
	}
}

// TestBenchAdapters measures the model with an adapter, and a service with two.
func TestBenchAdapters(t *testing.T) {
	t.Parallel()
	b, dir := newAdapted(t)
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	var rows []struct{ Test string }
	if b.must(t, &rows, "bench", "--lora", one, "--prompt", "8", "--gen", "4", "--reps", "1", "--batch", "2", "--json"); len(rows) == 0 {
		t.Error("no measurements")
	}
	url, _ := b.serve(t, "--lora", "a="+one, "--lora", "b="+two)
	var report struct{ Answered, Failed int }
	b.must(t, &report, "bench", "serve", "--url", url, "--name", "a,b,fake,none", "--requests", "8", "--concurrency", "2", "--prompt", "3", "--gen", "2", "--json")
	if report.Answered != 6 || report.Failed != 2 {
		t.Errorf("%+v, expected failures of the name none", report)
	}
}
