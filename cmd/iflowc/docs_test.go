package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDocs runs every block of the documentation that is marked as shell, a page
// in one shell, in a folder that has the repository's models and docs.
func TestDocs(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compiler(); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := fenced(string(text), "sh")
		if len(blocks) == 0 {
			continue
		}
		ran++
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			runPage(t, root, strings.Join(blocks, "\n"))
		})
	}
	if ran < 3 {
		t.Errorf("%d pages have commands", ran)
	}
}

// runPage runs a page's commands; the first that fails ends it.
func runPage(t *testing.T, root, script string) {
	dir := t.TempDir()
	for _, name := range []string{"models", "docs"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-x", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+scratch+":"+os.Getenv("PATH"))
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := string(out)
		t.Errorf("%v\n…%s", err, text[max(0, len(text)-3000):])
	}
}
