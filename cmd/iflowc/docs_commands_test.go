package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere are commands that stand in the documentation outside of blocks that
// are run, by their first words, with what runs them: a stage of .ci/run, or a
// test by its folder.
var elsewhere = []struct{ command, by string }{
	{".ci/run", "stage test"}, // what runs all of this
	{"go run ./tools/gen/vendordeps", "codegen TestVendoredSources"},
	{"iflowc compile --target", "codegen/compiler TestCUDALaunches"},
	{"iflowc compile --cc", "stage neon"},
	{"iflowc diff", "cmd/iflowc TestDiffAgrees"},
	{"iflowc compile models/smollm2-135m-instruct.yaml", "stage smollm2"},
	{"iflowc chat", "cmd/iflowc TestLaunch"},
	{"iflowc list", "cmd/iflowc TestList"},
	{"iflowc serve", "cmd/iflowc TestServe"},
	{"iflowc profile --target", "cmd/iflowc TestEmulatedProfile"},
	{"iflowc pull", "cmd/hub TestPull"},
	{"BIN generate --device", "cmd/iflowc TestEmulatedFailures"},
	{"go run ./tools/check/prose", "tools/check/prose TestProject"},
	{"BIN classify --pair", "runtime/cli TestClassifyPair"},
	{"BIN embed --prompt-name", "runtime/cli TestPrompts"},
	{"iflowc check --lora", "cmd/iflowc TestCheckAdapter"},
	{"iflowc compile --merge-lora", "cmd/iflowc TestMergeAdapter"},
	{"BIN generate --lora", "runtime/cli TestGenerateAdapter"},
	{"BIN chat --lora", "runtime/cli TestChatAdapter"},
	{"BIN bench --lora", "runtime/cli TestBenchAdapters"},
	{"BIN serve --lora", "runtime/cli TestServeAdapters"},
	{"BIN serve --lora-dir", "runtime/cli TestServeAdapters"},
	{"BIN hidden", "runtime/cli TestEncoderHidden"},
	{"BIN perplexity --against", "runtime/cli TestPerplexityAgainst"},
	{"BIN info --json", "cmd/iflowc TestJSONKeys"},
	{"BIN translate", "runtime/cli TestSpeculateSources"},
	{"BIN tune --device", "cmd/iflowc TestEmulatedProfile"},
	{"BIN verify", "runtime/cli TestVerify"},
	{"mpirun", "stage partition"},
	{"script/attack", "stage attack"},
	{"script/check-partition", "stage partition"},
	{"script/compare-reference", "stage smollm2"},
	{"script/site", "stage site"},
	{"script/pictures", "stage site"},
	{"script/simulate network --against", "tools/simulate TestAgainst"},
	{"go build -o hosts", "stage hosts"},
	{"script/simulate serving --ablate", "tools/simulate/serving TestCommand"},
	{"script/check-all", "stage cuda"},
	{"script/gpu-bundle", "stage cuda"},
	{"script/gpu-report", "stage cuda"},
	{"tools/check/gpubundle/run", "stage cuda"},
	{"BIN serve --keys --trusted-proxy", "stage service"},
	{"BIN weights", "runtime/cli TestRandomWeights"},
	{"tools/check/clients/run", "stage clients"},
	{"tools/check/masks/run", "stage masks"},
	{"tools/check/agents/run", "stage agents"},
	{"tools/check/schemas/run", "stage schemas"},
}

// pageTests are the tests that run the blocks with marks of a page, where run_page of
// .ci/run does not.
var pageTests = map[string]string{"docs/two-machines.md": "tools/hosts TestPage"}

// notRun are commands that nothing runs here, with the reason.
var notRun = []struct{ command, why string }{
	{"go install github.com/iflowc/iflowc/cmd/iflowc@latest", "needs a published version"},
	{"go install ./cmd/iflowc", "writes to the user's folder of programs; TestDocs and the stages build the same program"},
	{"docker", "needs Docker; tools/check/deploycheck checks the Dockerfile's stages"},
	{"kubectl", "needs a cluster; tools/check/deploycheck holds the files to Kubernetes' schemas and runs the pods' scripts"},
	{"pip install", "fetches hundreds of megabytes; the stages of .ci/run that need packages install the same lists"},
	{"python -m venv", "goes with pip install"},
	{"sbatch", "needs a cluster with Slurm; tools/check/deploycheck runs the job's script with a stand-in"},
	{"script/bench-baselines", "needs other runtimes, which take minutes to install, and a quiet machine"},
	{"script/bench-serve", "needs llama.cpp's server and a quiet machine"},
	{"script/check-endings", "needs a model; script/check-all runs it"},
	{"script/check-lost-rank", "kills ranks of a service for minutes, under two families of MPI"},
	{"script/perplexity-table --reference", "needs transformers"},
	{"script/quality-table", "needs llama.cpp, which takes minutes to build, and a quiet machine"},
	{"script/train-lora", "trains for minutes with torch"},
	{"script/nightly", "runs go test ./... and script/check-all, for an hour"},
	{"script/soak", "takes ten minutes of a machine by itself"},
	{"iflowc compile --draft-head", "needs a checkpoint with a draft layer; TestCompiledDraftLayer compiles small ones"},
	{"script/speculation-grid --heads", "needs trained heads"},
	{"torchrun", "needs torch; TestEmulatedNCCL starts ranks by the same variables"},
	{"tools/gen/decoder/", "trains for half an hour with torch"},
	{"tools/gen/medusa/", "trains for minutes with torch"},
	{"tools/gen/reference/", "needs torch or ggml; what it made is committed"},
	{"tools/check/keys/", "needs torch; TestKeys in spec replays what it recorded"},
}

// A pageCommand is a command that a page shows.
type pageCommand struct {
	page       string
	text       string // as it stands there
	program    string // iflowc, BIN, a script's path, the name of another program
	subcommand string // of iflowc, a compiled model or go; "bench serve" and "run ./cmd/iflowc" are such
	flags      []string
	block      string // the kind of block: "sh", "sh STAGE"; "" when it is not run
}

// covers tells whether running c shows that form works, of which the page gives
// the usage: the same subcommand, with its flags.
func (c pageCommand) covers(form pageCommand) bool {
	return c.program == form.program && (form.subcommand == "" || c.subcommand == form.subcommand) &&
		!slices.ContainsFunc(form.flags, func(f string) bool { return !slices.Contains(c.flags, f) })
}

// starts tells whether the command begins with the words of a table's row: its
// program, or a folder of programs, its subcommand, and flags that it must have.
func (c pageCommand) starts(row string) bool {
	words := strings.Fields(row)
	if !strings.HasPrefix(c.program, words[0]) || c.program != words[0] && !strings.HasSuffix(words[0], "/") {
		return false
	}
	have := append(strings.Fields(c.text), c.subcommand)
	for _, w := range words[1:] {
		if !slices.Contains(have, w) && !slices.Contains(c.flags, w) {
			return false
		}
	}
	return true
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	flagWord = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	// Programs by other names than a path that says so.
	programName = regexp.MustCompile(`^(go|pip|python3?|(mpirun|srun)(\.\w+)?|sbatch|kubectl|docker|torchrun|scp|nvcc)$`)
	assignment  = regexp.MustCompile(`^\w+=`)
)

// pageCommands finds the commands of a page: in blocks of any kind, and in code
// within sentences.
func pageCommands(page, text string) (found []pageCommand) {
	block, fence := "", false
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		kind, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence:
			fence = !fence
			if block = ""; fence && strings.HasPrefix(kind, "sh") {
				block = kind
			}
		case fence, strings.HasPrefix(line, "    "):
			for _, part := range splitShell(line) {
				if c, ok := newPageCommand(part); ok {
					c.page, c.block = page, block
					found = append(found, c)
				}
			}
		default:
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				for _, part := range splitShell(m[1]) {
					if c, ok := newPageCommand(part); ok {
						c.page = page
						found = append(found, c)
					}
				}
			}
		}
	}
	return found
}

// splitShell parts a line where one command ends and another begins, and leaves
// its comment out.
func splitShell(line string) (parts []string) {
	var quote rune
	part := ""
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"', r == '\'' && (i == 0 || strings.ContainsRune(" =", rune(line[i-1]))): // not an apostrophe
			quote = r
		case r == '#' && (i == 0 || line[i-1] == ' '):
			return append(parts, part)
		case strings.ContainsRune("|&;()<>", r):
			parts, part = append(parts, part), ""
			continue
		}
		part += string(r)
	}
	return append(parts, part)
}

// newPageCommand reads one command; ok is false when it is none, or only the
// name of a program that has subcommands.
func newPageCommand(text string) (c pageCommand, ok bool) {
	words := strings.Fields(text)
	for len(words) > 1 && (assignment.MatchString(words[0]) || words[0] == "/usr/bin/time" || words[0] == "-v" ||
		strings.HasPrefix(filepath.Base(words[0]), "python") && strings.HasSuffix(words[1], ".py")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return c, false
	}
	c.text, c.flags = strings.Join(words, " "), flagWord.FindAllString(text, -1)
	name := words[0]
	base := filepath.Base(name)
	switch {
	case name == "iflowc", name == "BIN", strings.HasPrefix(name, "./") && base == name[2:] && len(base) > 1:
		if c.program = "BIN"; name == "iflowc" {
			c.program = name
		}
	case name == ".ci/run", strings.HasPrefix(name, "script/") && len(base) > 1 && name != "script/", strings.HasPrefix(name, "tools/") && (base == "run" || strings.HasSuffix(base, ".py")):
		c.program = name
		return c, true
	case programName.MatchString(base):
		c.program, _, _ = strings.Cut(strings.TrimSuffix(base, "3"), ".")
	default:
		return c, false
	}
	if len(words) < 2 || c.program == "go" && len(words) < 3 {
		return c, false
	}
	if c.program == "iflowc" || c.program == "BIN" || c.program == "go" {
		if c.subcommand = words[1]; c.subcommand[0] == '-' {
			c.subcommand = ""
		}
		if len(words) > 2 && (c.subcommand == "bench" && (words[2] == "serve" || words[2] == "model") || c.program == "go" && c.subcommand == "run") {
			c.subcommand += " " + words[2]
		}
	}
	return c, true
}

// documentation reads the pages by their names.
func documentation(t *testing.T) map[string]string {
	t.Helper()
	pages := []string{"../../README.md", "../../CONTRIBUTING.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/benchmarks/*.md", "../../docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	out := map[string]string{}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel("../..", path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.ToSlash(name)] = string(text)
	}
	return out
}

// TestDocsCommands: each command in the documentation is run by TestDocs or by
// a stage of .ci/run, is the usage of one that is, or stands in one of the two
// tables, in which nothing stands that no page has.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	ci, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var ran, shown []pageCommand
	for page, text := range documentation(t) {
		for _, c := range pageCommands(page, text) {
			if c.block == "" {
				shown = append(shown, c)
				continue
			}
			ran = append(ran, c)
			if stage, ok := strings.CutPrefix(c.block, "sh "); ok && pageTests[page] == "" && !regexp.MustCompile(`\brun_page `+page+" "+stage+`\s`).Match(ci) {
				t.Errorf("%s: the stage %s of .ci/run does not run_page its blocks", page, stage)
			}
		}
	}
	if len(ran) < 40 || len(shown) < 40 {
		t.Errorf("only %d commands that are run and %d others were found", len(ran), len(shown))
	}
	checkGoTests(t, shown)
	used := map[string]bool{}
	for _, c := range shown {
		if slices.ContainsFunc(ran, func(r pageCommand) bool { return r.covers(c) }) {
			continue
		}
		row := tableRow(c)
		if used[row] = true; row == "" {
			t.Errorf("%s: nothing runs %q: write it as a block marked sh, or name in a table what runs it or why nothing can", c.page, c.text)
		}
	}
	for _, e := range elsewhere {
		if !used[e.command] {
			t.Errorf("elsewhere: %q stands in no page, or is run by a block", e.command)
		}
		checkRunner(t, string(ci), e.by)
	}
	for _, by := range pageTests {
		checkRunner(t, string(ci), by)
	}
	for _, n := range notRun {
		if !used[n.command] {
			t.Errorf("notRun: %q stands in no page, or is run by a block", n.command)
		}
	}
}

// checkGoTests fails where go test is asked for tests that its package lacks.
func checkGoTests(t *testing.T, shown []pageCommand) {
	t.Helper()
	call := regexp.MustCompile(`^go test (\S+).* -run '?([^ ']+)`)
	for _, c := range shown {
		m := call.FindStringSubmatch(c.text)
		if m == nil {
			continue
		}
		files, err := filepath.Glob(filepath.Join("../..", m[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		test := regexp.MustCompile(`\nfunc Test\w*` + strings.TrimPrefix(strings.TrimPrefix(m[2], "^"), "Test"))
		if !slices.ContainsFunc(files, func(f string) bool {
			text, err := os.ReadFile(f)
			return err == nil && test.Match(text)
		}) {
			t.Errorf("%s: no test of %s is called so: %s", c.page, m[1], c.text)
		}
	}
}

// tableRow is the row of one of the tables that speaks of a command.
func tableRow(c pageCommand) string {
	for _, e := range elsewhere {
		if c.starts(e.command) {
			return e.command
		}
	}
	for _, n := range notRun {
		if c.starts(n.command) {
			return n.command
		}
	}
	return ""
}

// checkRunner fails unless there is such a stage or test.
func checkRunner(t *testing.T, ci, by string) {
	t.Helper()
	where, name, _ := strings.Cut(by, " ")
	if where == "stage" {
		if !strings.Contains(ci, "\ndo_"+name+"() {") {
			t.Errorf("elsewhere: .ci/run has no stage %s", name)
		}
		return
	}
	files, err := filepath.Glob(filepath.Join("../..", where, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return
		}
	}
	t.Errorf("elsewhere: %s has no %s", where, name)
}
