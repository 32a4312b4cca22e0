package completion

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

type line struct {
	Make struct {
		Spec   string `arg:"" help:"What to make."`
		Target string `enum:"cpu,cuda" default:"cpu" help:"Target: which."`
		Out    string `short:"o" placeholder:"PLACE" help:"File (it's new)."`
		Fast   bool   `help:"Do it fast."`
	} `cmd:"" help:"Make it: now."`
	Bench struct {
		Run struct {
			Reps int `help:"How often."`
		} `cmd:"" default:"withargs" help:"Measure."`
		Serve struct {
			URL string `help:"Where."`
		} `cmd:"" help:"Measure a service."`
	} `cmd:"" help:"Measure."`
	Secret struct{} `cmd:"" hidden:""`
}

func script(t *testing.T, shell string) string {
	t.Helper()
	k, err := kong.New(&line{}, kong.Name("my.prog"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Script(shell, "my.prog", k.Model, map[string][]string{"spec": {"llama", "qwen"}, "PLACE": {"here", "there"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBash checks the completions of a real bash.
func TestBash(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	s := script(t, "bash")
	for _, c := range []struct{ typed, want string }{
		{"", "bench make"},
		{"b", "bench"},
		{"make --t", "--target"},
		{"make --target ", "cpu cuda"},
		{"make --target cu", "cuda"},
		{"make ", "llama qwen"},
		{"make --out ", "here there"},
		{"bench serve --url ", ""},
		{"bench ", "run serve"},
		{"bench --r", "--reps"},
		{"bench serve --", "--help --url"},
		{"make llama --f", "--fast"},
	} {
		words := strings.Split("my.prog "+c.typed, " ")
		var list []string
		for _, w := range words {
			list = append(list, quote(w))
		}
		ask := fmt.Sprintf("%s\nCOMP_WORDS=(%s) COMP_CWORD=%d\n_my_prog\necho \"${COMPREPLY[@]}\"", s, strings.Join(list, " "), len(words)-1)
		out, err := exec.CommandContext(t.Context(), shell, "--norc", "-c", ask).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", c.typed, err, out)
		}
		got := strings.Fields(string(out))
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: bash offers %q, expected %q", c.typed, got, c.want)
		}
	}
}

// TestOthers checks the words in all scripts, and their syntax with zsh and fish if
// these are installed.
func TestOthers(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"zsh", "fish"} {
		s := script(t, shell)
		for _, want := range []string{"make", "llama", "target", "cpu cuda", "serve", "url"} {
			if !strings.Contains(s, want) {
				t.Errorf("%s: %q is not in the script:\n%s", shell, want, s)
			}
		}
		if strings.Contains(s, "secret") {
			t.Errorf("%s offers a hidden subcommand", shell)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: its script was not read by it", shell)
			continue
		}
		cmd := exec.CommandContext(t.Context(), path, "-n")
		cmd.Stdin = strings.NewReader(s)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	k, err := kong.New(&line{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Script("cmd.exe", "x", k.Model, nil); err == nil || !strings.Contains(err.Error(), "bash, zsh, fish") {
		t.Errorf("an unknown shell: %v", err)
	}
}
