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
)

// drafting makes a program that hands out what a binary embeds, as the binary
// itself would.
func drafting(t *testing.T, b *fakeBinary) string {
	t.Helper()
	code, inside, stderr := b.run(t.Context(), "embedded")
	if code != 0 {
		t.Fatal(stderr)
	}
	file := filepath.Join(t.TempDir(), "inside")
	if err := os.WriteFile(file, []byte(inside), 0o644); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = embedded ] && cat %s\n", file)
	if err := os.WriteFile(b.program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return b.program
}

// TestSpeculate: every method gives the same tokens, and the same model as its
// own draft is always right.
func TestSpeculate(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	draft := drafting(t, newBinary(t, nil))
	prompt := []int32{1, 12, 36, 3, 40}
	want := devicetest.Greedy(prompt, 40, b.salt)
	for _, args := range []string{"", "--speculate none", "--speculate lookup", "--draft " + draft, "--speculate auto --draft-tokens 3 --draft " + draft, "--draft-accept rejection --draft " + draft} {
		var g generated
		b.must(t, &g, strings.Fields("generate --ids 1,12,36,3,40 -n 40 --ignore-eos --json "+args)...)
		if !slices.Equal(g.Tokens, want) {
			t.Errorf("%s: %v, expected %v", args, g.Tokens, want)
		}
		if drafted := g.Timings["drafted"]; args == "--speculate none" && drafted != 0 || g.Timings["accepted"] > drafted {
			t.Errorf("%s: %v", args, g.Timings)
		}
		if strings.HasPrefix(args, "--draft") && g.Timings["accepted"] != g.Timings["drafted"] {
			t.Errorf("%s: a draft of the model itself was rejected: %v", args, g.Timings)
		}
	}
	for _, seed := range []string{"1", "2", "3"} {
		var plain, drafted generated
		b.must(t, &plain, "generate", "--ids", "1,9", "--temp", "1", "--seed", seed, "-n", "60", "--json", "--speculate", "none")
		b.must(t, &drafted, "generate", "--ids", "1,9", "--temp", "1", "--seed", seed, "-n", "60", "--json", "--draft", draft)
		if !slices.Equal(plain.Tokens, drafted.Tokens) {
			t.Errorf("seed %s: %v, with drafts %v", seed, plain.Tokens, drafted.Tokens)
		}
	}
}

// TestSpeculateErrors: what cannot draft is refused, and why.
func TestSpeculateErrors(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	other := drafting(t, newBinary(t, func(m *manifest.Manifest) { m.Vocab = 60 }))
	encoder := drafting(t, newBinary(t, func(m *manifest.Manifest) { m.Network = "encoder_only" }))
	for args, want := range map[string]string{
		"--speculate magic":         "magic",
		"--speculate draft":         "--draft BIN",
		"--speculate medusa":        "medusa",
		"--draft-tokens 300":        "--draft-tokens 300",
		"--draft-accept often":      "--draft-accept often",
		"--draft /bin/true":         "compile it again",
		"--draft /nonexistent/file": "/nonexistent/file",
		"--draft " + other:          "vocabulary",
		"--draft " + encoder:        "only a decoder",
	} {
		code, _, stderr := b.run(t.Context(), append([]string{"generate", "--ids", "1"}, strings.Fields(args)...)...)
		if code != 2 || !strings.Contains(stderr, want) || strings.Count(strings.TrimSpace(stderr), "\n") > 0 {
			t.Errorf("%s: exit %d, %q; expected %q", args, code, stderr, want)
		}
	}
}

// TestSpeculateSources: an encoder-decoder writes the same with drafts from its
// source; what else is asked of it, and of searches, is refused in a sentence.
func TestSpeculateSources(t *testing.T) {
	t.Parallel()
	b := newTranslator(t, nil)
	var plain, drafted translated
	ask := []string{"translate", "--encoder-ids", "9,10,11,9,10", "-n", "40", "--json", "--beams", "1", "--speculate"}
	b.must(t, &plain, append(ask, "none")...)
	b.must(t, &drafted, append(ask, "lookup")...)
	if len(plain.Outputs) != 1 || !slices.Equal(plain.Outputs[0].Tokens, drafted.Outputs[0].Tokens) || plain.Outputs[0].Score != drafted.Outputs[0].Score {
		t.Errorf("%v, with drafts %v", plain, drafted)
	}
	for args, want := range map[string]string{
		"--beams 1 --speculate draft":  "--speculate draft: an encoder-decoder supports only lookup",
		"--beams 1 --speculate medusa": "--speculate medusa: an encoder-decoder supports only lookup",
		"--beams 1 --draft /bin/true":  "--draft: an encoder-decoder supports only lookup",
		"--beams 2 --speculate lookup": "--speculate lookup and 2 beams exclude each other: a beam search does not draft",
		"--beams 2 --draft /bin/true":  "--draft and 2 beams exclude each other: a beam search does not draft",
	} {
		code, _, stderr := b.run(t.Context(), append([]string{"translate", "--encoder-ids", "9"}, strings.Fields(args)...)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q; expected %q", args, code, stderr, want)
		}
	}
	code, _, stderr := newBinary(t, nil).run(t.Context(), "generate", "--ids", "1", "--strategy", "beam", "--speculate", "lookup")
	if code != 2 || !strings.Contains(stderr, "--speculate lookup and --strategy beam exclude each other: a beam search does not draft") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// TestBenchSpeculate: the document has all sizes of steps and all methods.
func TestBenchSpeculate(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	b.Tokenizer = ""
	draft := newBinary(t, nil)
	draft.Tokenizer = ""
	var report struct {
		Steps []struct {
			Tokens int
			Ratio  float64
		}
		Texts []struct{ Text, Method string }
	}
	b.must(t, &report, "bench", "--speculate", "--json", "--reps", "1", "--gen", "20", "--draft", drafting(t, draft))
	if n := len(report.Steps); n != 13 || report.Steps[n-1].Tokens != 64 || report.Steps[n-1].Ratio <= 0 {
		t.Errorf("steps %+v", report.Steps)
	}
	var methods []string
	for _, row := range report.Texts {
		methods = append(methods, row.Method)
	}
	if !slices.Equal(methods, []string{"none", "lookup", "draft", "auto"}) {
		t.Errorf("methods %v", methods)
	}
}
