package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"
)

// TestLaunch: run and chat compile and become the binary; flags of both may
// stand in any order, before and after the model.
func TestLaunch(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	want := call(t, nil, demo(t), "generate", "-p", "Once", "-n", "6", "--temp", "0").succeed(t)
	compile := demoFlags[:len(demoFlags):len(demoFlags)]
	for _, args := range [][]string{
		append([]string{"run", "-p", "Once", "-n6", "--temp=0"}, compile...),
		append(append([]string{"run"}, compile...), "-p", "Once", "--", "-n", "6", "--temp", "0"),
	} {
		if got := iflowc(t, args...).succeed(t); got != want {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	chat := exec.Command(bin, append(append([]string{"chat"}, compile...), "--temp", "0", "-n", "4")...)
	chat.Stdin = strings.NewReader("Hello\n")
	if out, err := chat.Output(); err != nil || strings.TrimSpace(string(out)) == "" {
		t.Errorf("chat: %q, %v", out, err)
	}
}

// TestServe: serve listens where its flag says.
func TestServe(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	resp, err := http.Get(serving(t, demoFlags...) + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// serving starts iflowc serve until the test ends and returns the service's address.
func serving(t *testing.T, args ...string) (address string) {
	t.Helper()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return listening(t, exec.Command(bin, append([]string{"serve", "--port", "0", "--log", "none"}, args...)...))
}

// listening runs a command that serves until the test ends, and returns the service's address.
func listening(t *testing.T, cmd *exec.Cmd) (address string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // the answers are what counts
	})
	said := ""
	for s := bufio.NewScanner(stderr); address == "" && s.Scan(); said += s.Text() + "\n" {
		if _, after, ok := strings.Cut(s.Text(), "listening at "); ok {
			address, _, _ = strings.Cut(after, " ")
		}
	}
	if address == "" {
		t.Fatalf("%v: it does not listen:\n%s", cmd.Args, said)
	}
	return address
}

// TestWrongLaunches: a wrong flag of the binary is an error before the compile.
func TestWrongLaunches(t *testing.T) {
	t.Parallel()
	for args, words := range map[string]string{
		"serve demo --prot 8081":        "unknown flag --prot; did you mean --port?",
		"serve demo --quants q4":        "unknown flag --quants; did you mean --quant?",
		"chat demo --sede 1":            "unknown flag --sede; did you mean --seed?",
		"serve demo --port many":        "--port: ;many",
		"serve":                         "missing argument <spec>",
		"serve demo demo":               `unexpected argument "demo"`,
		"run demo -p x --system y":      "--system: not a flag of the binary's generate",
		"run demo -f no-such.txt":       "-f: ;no-such.txt",
		"bench demo":                    "bench is a subcommand of compiled models: iflowc compile SPEC -o BIN, then ./BIN bench",
		"servee demo":                   "unknown subcommand servee; did you mean serve?",
		"serve no-such-model --port 80": "no-such-model",
	} {
		wantError(t, iflowc(t, strings.Fields(args)...), exitUsage, strings.Split(words, ";")...)
	}
}

// TestBinaryWords: the binary gets its own flags as they were written, and no
// others.
func TestBinaryWords(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"run demo -p x":                                      "-p x",
		"run --trace t.json demo -p x":                       "--trace t.json -p x",
		"run -n5 --quant q8 demo -p --temp=0 -j 2":           "",
		"run -n5 --quant=q8 demo -p x --temp=0 -j2 --json":   "-n5 -p x --temp=0 --json",
		"run --json -j 2 --stop a --embed-weights demo -p x": "--json --stop a -p x",
	} {
		parser, err := newParser(kong.Bind(rest(nil)))
		if err != nil {
			t.Fatal(err)
		}
		k, err := parser.Parse(strings.Fields(args))
		if want == "" {
			if err == nil {
				t.Errorf("%s: accepted", args)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := binaryWords(k, "generate"); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: the binary gets %q (%v), want %q", args, got, err, want)
		}
	}
}

// TestCompletesLaunches: a shell completes the flags of the binary, and the
// names of the library.
func TestCompletesLaunches(t *testing.T) {
	t.Parallel()
	flags := flagsOf(t, iflowc(t, "completion", "bash").succeed(t))
	for subcommand, want := range map[string]string{"serve": "--port --quant --tls-cert", "chat": "--system --temp --quant", "run": "--stop --system --quant", "list": "--json --local"} {
		for _, flag := range strings.Fields(want) {
			if !strings.Contains(flags[subcommand], " "+flag+" ") {
				t.Errorf("%s: no %s among %s", subcommand, flag, flags[subcommand])
			}
		}
	}
}

// TestVersion: the flag prints what the subcommand does.
func TestVersion(t *testing.T) {
	t.Parallel()
	out := iflowc(t, "version").succeed(t)
	if flag := iflowc(t, "--version").succeed(t); flag != out || !strings.HasPrefix(out, "iflowc ") {
		t.Errorf("version %q, --version %q", out, flag)
	}
}

// hubCache makes a hub's cache that holds a copy of the demo model.
func hubCache(t *testing.T, repository string) string {
	t.Helper()
	cache, commit := t.TempDir(), strings.Repeat("0123456789", 4)
	folder := filepath.Join(cache, "models--"+strings.ReplaceAll(repository, "/", "--"))
	for _, dir := range []string{"refs", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(copyModel(t, nil), filepath.Join(folder, "snapshots", commit)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "refs", "main"), []byte(commit), 0o644); err != nil {
		t.Fatal(err)
	}
	return cache
}

// TestPulled: a repository, or a spec that names one, finds the pulled model, and
// otherwise the error says how to pull it.
func TestPulled(t *testing.T) {
	t.Parallel()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("iflow: 1\nrepository: acme/mine\nfamily: llama\nconfig_file: config.json\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := call(t, []string{"HF_HUB_CACHE=" + hubCache(t, "acme/mine")}, bin, "check", file)
	o.succeed(t)
	if !strings.Contains(o.stderr, "using acme/mine, pulled to") {
		t.Errorf("no notice: %q", o.stderr)
	}
	o = call(t, []string{"HF_HUB_CACHE=" + t.TempDir()}, bin, "check", file, "--quant", "q8")
	wantError(t, o, exitUsage, "mine: no ", "\n  iflowc pull acme/mine\n  iflowc check "+file+" --quant q8\n", "--model-dir")
	o = call(t, []string{"HF_HUB_CACHE=" + t.TempDir()}, bin, "compile", "llama2-7b-chat-gguf")
	wantError(t, o, exitUsage, "iflowc pull TheBloke/Llama-2-7B-Chat-GGUF --gguf llama-2-7b-chat.Q8_0\n")
	wantError(t, call(t, nil, bin, "pull", "acme/mine", "--quant", "q4"), exitUsage, "--gguf q4 selects the GGUF file", "compile or run")
	env := []string{"HF_HUB_CACHE=" + hubCache(t, "acme/tiny")}
	if out := call(t, env, bin, "check", "acme/tiny").succeed(t); !strings.HasPrefix(out, "tiny: supported") {
		t.Errorf("a pulled repository: %q", out)
	}
	wantError(t, call(t, env, bin, "run", "acme/large", "-p", "Hello"), exitUsage, "acme/large: no such file", "\n  iflowc pull acme/large\n  iflowc run acme/large -p Hello\n")
	if err := os.WriteFile(file, []byte("iflow: 1\nrepository: acme\nfamily: llama\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantError(t, iflowc(t, "check", file), exitUsage, "mine.yaml:2:1: repository: ", "OWNER/NAME")
}

// TestList: the list says which weights are on this machine.
func TestList(t *testing.T) {
	t.Parallel()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HF_HUB_CACHE=" + hubCache(t, "openai-community/gpt2")}
	var list []listed
	decode(t, call(t, env, bin, "list", "--json").succeed(t), &list)
	have := map[string]listed{}
	for _, l := range list {
		have[l.Name] = l
	}
	for name, want := range map[string]listed{
		"demo":       {Name: "demo", Network: "decoder_only", Parameters: 1574784, Weights: weightsEmbedded},
		"llama2-7b":  {Name: "llama2-7b", Family: "llama", Network: "decoder_only", Parameters: 6738415616, Repository: "meta-llama/Llama-2-7b-hf"},
		"t5-small":   {Name: "t5-small", Family: "t5", Network: "encoder_decoder", Parameters: 60506624, Repository: "google-t5/t5-small"},
		"gpt2":       {Name: "gpt2", Family: "gpt2", Network: "decoder_only", Parameters: 124439808, Repository: "openai-community/gpt2", Weights: weightsPulled, Folder: have["gpt2"].Folder},
		"stories15m": {Name: "stories15m", Family: "llama", Network: "decoder_only", Parameters: have["stories15m"].Parameters},
	} {
		if have[name] != want {
			t.Errorf("%s: %+v, want %+v", name, have[name], want)
		}
	}
	table := call(t, env, bin, "list", "--local").succeed(t)
	if lines := strings.Split(table, "\n"); len(lines) != 6 || !strings.HasPrefix(lines[1], "demo ") || !strings.HasPrefix(lines[2], "gpt2 ") || !strings.Contains(lines[2], "pulled") {
		t.Errorf("local models:\n%s", table)
	}
}
