package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/spec/checkpoint"
)

var hostileDir = flag.String("hostile", "testdata/hostile", "folder whose subfolders hold broken weight files and a manifest.json of them")

// A fate is what must become of a file: "load" or "reject".
type fate struct {
	Expect string `json:"expect"`
	Why    string `json:"why"`
}

// manifests reads every manifest below dir: file path to verdict.
func manifests(t *testing.T, dir string) map[string]fate {
	t.Helper()
	all := map[string]fate{}
	for _, pattern := range []string{"manifest.json", "*/manifest.json"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var nested struct {
				Files map[string]fate `json:"files"`
			}
			files := map[string]fate{}
			if json.Unmarshal(data, &nested) == nil && len(nested.Files) > 0 {
				files = nested.Files
			} else if err := json.Unmarshal(data, &files); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			for name, v := range files {
				all[filepath.Join(filepath.Dir(path), name)] = v
			}
		}
	}
	return all
}

// readAll opens a weight file, or a folder of them, and reads every tensor, also those that
// only an index names.
func readAll(path string) error {
	set, err := checkpoint.Open(path)
	if err != nil {
		return err
	}
	defer set.Close()
	names := set.Absent()
	for _, t := range set.Tensors() {
		names = append(names, t.Name)
	}
	for _, name := range names {
		if _, err := set.Bytes(name); err != nil {
			return err
		}
	}
	return nil
}

// TestHostileFiles: broken and malicious files are refused with an error that
// is one line, without a panic and without an allocation that the file does
// not justify; the sound files among them load.
func TestHostileFiles(t *testing.T) {
	files := manifests(t, *hostileDir)
	if len(files) == 0 {
		t.Fatalf("%s: no manifest.json", *hostileDir)
	}
	for path, v := range files {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := readAll(path)
		runtime.ReadMemStats(&after)
		switch {
		case v.Expect == "reject" && err == nil:
			t.Errorf("%s loads, but: %s", path, v.Why)
		case v.Expect == "load" && err != nil:
			t.Errorf("%s does not load: %v", path, err)
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: more than one line: %v", path, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: %d MB were allocated", path, grown>>20)
		}
	}
	t.Logf("%d files", len(files))
}
