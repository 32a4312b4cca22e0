package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctor: every section is there, and what is not found comes with a way to
// get it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	text := iflowc(t, "doctor").succeed(t)
	for _, want := range []string{"compiling\n", "C compiler", "Go ", "running\n", "isa portable", "disk\n", "of at most", "GPUs\n", "several processes\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var found []finding
	if err := json.Unmarshal([]byte(iflowc(t, "doctor", "--json").succeed(t)), &found); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Section == "" || f.What == "" || f.Detail == "" || f.State == findingMissing {
			t.Errorf("%+v", f)
		}
	}
}

func TestHugePages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "enabled")
	for text, state := range map[string]string{"always [madvise] never\n": findingOK, "always madvise [never]\n": findingNote} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if f, ok := lookHugePages(path); !ok || f.State != state || (f.Remedy != "") != (state == findingNote) {
			t.Errorf("%s: %+v", text, f)
		}
	}
	if f, ok := lookHugePages(path + "x"); ok {
		t.Errorf("%+v", f)
	}
}

func TestOlderGo(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"go1.25.4": true, "go1.9": true, "go1.26": false, "go1.26.8": false, "go1.30rc1": false, "go2.0": false, "devel go1.27-abc": false} {
		if got := olderGo(version); got != want {
			t.Errorf("%s: %t", version, got)
		}
	}
}

// filesOf is what a model's binary and its weights hold.
func filesOf(t *testing.T, model string) (text [2]string) {
	t.Helper()
	for i, file := range []string{model, model + ".weights"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(data)
	}
	return text
}

// TestClean: what was compiled can be removed and made again; its result stays.
func TestClean(t *testing.T) {
	t.Parallel()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, script := range map[string]string{"cc": noCC, "go": noGo} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"IFLOWC_CACHE=" + filepath.Join(dir, "cache"), "IFLOWC_CACHE_SIZE=50G", "PATH=" + dir + ":" + os.Getenv("PATH")}
	out := filepath.Join(dir, "demo")
	compile := []string{"compile", demoSpec, "--isa", "portable", "-o", out}
	call(t, env, bin, compile...).succeed(t)
	made := filesOf(t, out)
	if text := call(t, env, bin, "clean", "-n").succeed(t); !strings.Contains(text, "obj ") || !strings.Contains(text, "of at most 50.0 GB") {
		t.Error(text)
	}
	if text := call(t, env, bin, "clean", "--unused", "1h").succeed(t); !strings.Contains(text, "removed 0 kB") {
		t.Error(text)
	}
	call(t, env, bin, "clean").succeed(t)
	if left, _ := filepath.Glob(filepath.Join(dir, "cache", "obj", "??", "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if filesOf(t, out) != made {
		t.Error("the compiled model has changed")
	}
	call(t, env, bin, compile...).succeed(t)
	if filesOf(t, out) != made {
		t.Error("the model that was made again is another")
	}
	wantError(t, call(t, env, bin, "clean", "--to", "much"), exitUsage, "--to", "much", "20G")
	wantError(t, call(t, []string{env[0], "IFLOWC_CACHE_SIZE=x"}, bin, "clean", "-n"), exitUsage, "IFLOWC_CACHE_SIZE", "20G")
}
