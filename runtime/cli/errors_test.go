//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/cli"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	long := strings.Repeat("9,", devicetest.Context) + "9"
	empty := newBinary(t, nil)
	if err := os.Remove(empty.program + ".weights"); err != nil {
		t.Fatal(err)
	}
	other := newBinary(t, func(m *manifest.Manifest) { m.Weights[0].Rows = 32 })
	swapped := newBinary(t, func(m *manifest.Manifest) { m.WeightsID = "abc" })
	blank := newBinary(t, nil)
	blank.Embedded.Tokenizer = ""
	for _, c := range []struct {
		name string
		b    *fakeBinary
		args string
		code int
		want string
	}{
		{"no subcommand", b, "", 2, "no subcommand given"},
		{"unknown subcommand", b, "dance", 2, "unknown subcommand dance"},
		{"unknown flag", b, "generate --nope", 2, "unknown flag --nope; "},
		{"misspelled flag", b, "serve --prot 8081", 2, "unknown flag --prot; did you mean --port?"},
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
		{"weights of another compile", swapped, "logits --ids 1", 2, "the program was compiled with abc"},
		{"no keys", b, "serve --port 0 --keys /nonexistent/keys", 2, "/nonexistent/keys"},
		{"two sources of keys", b, "serve --port 0 --keys x --api-key y", 2, "exclude each other"},
		{"no proxy", b, "serve --port 0 --trusted-proxy 10.0.0.0/99", 2, "--trusted-proxy 10.0.0.0/99"},
		{"no host", b, "serve --port 0 --allowed-host http://a", 2, "--allowed-host"},
		{"negative limit", b, "serve --port 0 --tokens-per-minute=-1", 2, "--tokens-per-minute"},
		{"no connections", b, "serve --port 0 --max-connections 0", 2, "--max-connections"},
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
	for _, args := range [][]string{{"version"}, {"--version"}} {
		code, stdout, stderr := b.run(t.Context(), args...)
		if code != 0 || !strings.Contains(stdout, ", compiled by iflowc ") || stderr != "" {
			t.Errorf("%v: exit %d, %q %q", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"--help"}, {"generate", "--help"}} {
		code, stdout, stderr := b.run(t.Context(), args...)
		if code != 0 || !strings.Contains(stdout, "Usage") || stderr != "" {
			t.Errorf("%v: exit %d, %q %q", args, code, stdout, stderr)
		}
	}
}

// TestDestinations: where a result cannot be written, nothing is measured for it.
func TestDestinations(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	missing := filepath.Join(t.TempDir(), "missing", "x.svg")
	for _, args := range [][]string{{"calibrate", "nothing.txt", "-o", missing}, {"tune", "-o", missing}, {"bench", "--plot", missing}, {"bench", "serve", "--plot", missing}} {
		code, stdout, stderr := b.run(t.Context(), args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, filepath.Dir(missing)+" does not exist; make it first") {
			t.Errorf("%v: exit %d, %q %q", args, code, stdout, stderr)
		}
	}
}

// TestEmptyLists: an empty list is no way to leave a flag out. An empty key in
// particular must not make a service open to all.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	for _, args := range [][]string{{"serve", "--port=0", "--api-key="}, {"serve", "--port=0", "--cors="}, {"generate", "--ids=9", "--stop-ids="}, {"bench", "--lengths="}, {"tune", "--rows="}} {
		code, stdout, stderr := b.run(t.Context(), args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "the list is empty; leave the flag out") {
			t.Errorf("%v: exit %d, %q %q", args, code, stdout, stderr)
		}
	}
}

// TestEmptyKey: so does an empty variable.
func TestEmptyKey(t *testing.T) {
	t.Setenv("IFLOWC_API_KEY", "")
	b := newBinary(t, nil)
	code, _, stderr := b.run(t.Context(), "serve", "--port=0")
	if code != 2 || !strings.Contains(stderr, "IFLOWC_API_KEY is set, but empty") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// TestHelpListsWhatSuits: the help lists what the model can do; the rest is
// refused with what the model is.
func TestHelpListsWhatSuits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		bin  *fakeBinary
		can  string
		not  string
	}{
		{"chat model", newBinary(t, func(m *manifest.Manifest) { m.Template = lettersTemplate }), "generate chat", "translate"},
		{"decoder", newBinary(t, nil), "generate logits hidden embed tokenize detokenize perplexity calibrate serve", "translate fill classify"},
		{"encoder", newEncoder(t), "logits hidden embed fill serve", "generate chat translate perplexity calibrate"},
		{"encoder-decoder", newTranslator(t, nil), "logits hidden translate serve", "generate chat fill classify perplexity calibrate"},
	} {
		_, help, _ := c.bin.run(t.Context(), "--help")
		lists := func(name string) bool { return strings.Contains(help, "\n  "+name+" ") }
		for _, name := range strings.Fields(c.can) {
			if !lists(name) {
				t.Errorf("%s: the help lacks %s:\n%s", c.name, name, help)
			}
		}
		for _, name := range strings.Fields(c.not) {
			if lists(name) {
				t.Errorf("%s: the help lists %s", c.name, name)
			}
			code, stdout, stderr := c.bin.run(t.Context(), append([]string{name}, map[string][]string{"fill": {"x"}, "perplexity": {"x"}, "calibrate": {"x"}}[name]...)...)
			if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "error: fake is a") {
				t.Errorf("%s: %s: exit %d, %q %q", c.name, name, code, stdout, stderr)
			}
		}
	}
}

// TestHelpOfPlainModel: without a chat template of the model's own, the help
// leaves chat out; --template runs it all the same.
func TestHelpOfPlainModel(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	if _, help, _ := b.run(t.Context(), "--help"); strings.Contains(help, "\n  chat ") {
		t.Errorf("the help lists chat:\n%s", help)
	}
	code, _, stderr := b.run(t.Context(), "chat")
	if code != 2 || !strings.Contains(stderr, "no chat template") || !strings.Contains(stderr, "--template") {
		t.Errorf("exit %d, %q", code, stderr)
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
	code := cli.Run(ctx, b.Embedded, cli.Process{Args: []string{"generate", "--ids", "9", "-n", "500", "--ignore-eos"}, Program: b.program, Stdout: out, Stderr: &errs})
	if code != 130 || errs.String() != "interrupted\n" {
		t.Errorf("exit %d, %q", code, errs.String())
	}
	if !strings.HasSuffix(out.String(), "\n") {
		t.Error("the line is not ended")
	}
}
