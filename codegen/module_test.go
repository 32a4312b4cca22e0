package codegen

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// moduleFiles are the files of a model that does nothing.
func moduleFiles(t *testing.T) map[string][]byte {
	t.Helper()
	m := manifest.Manifest{
		Format: manifest.Format, Compiler: "test", Name: "Tiny Model", Network: "decoder_only", Vocab: 4, Context: 8,
		Libs: []manifest.Lib{{ISA: "avx2", File: "lib-avx2.so", Needs: []string{"AVX2", "FMA"}}, {ISA: "portable", File: "lib-portable.so"}},
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"model.json": text, "tokenizer.bin": nil, "model.ir": []byte("module tiny {\n}\n"), "model.yaml": []byte("name: tiny\n"),
		"lib-avx2.so": []byte("x"), "lib-portable.so": []byte("y"),
	}
}

func TestGlue(t *testing.T) {
	t.Parallel()
	files := moduleFiles(t)
	m, err := readManifest(files)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Glue(m)
	if err != nil {
		t.Fatal(err)
	}
	formatted, err := format.Source(text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, formatted) {
		t.Errorf("not as gofmt writes it:\n%s", text)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "glue.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(want) {
		t.Errorf("main.go is\n%s\nexpected testdata/glue.golden", text)
	}
}

func TestModuleFilesChecked(t *testing.T) {
	t.Parallel()
	files := moduleFiles(t)
	delete(files, "lib-avx2.so")
	if _, err := Module(files); err == nil || !strings.Contains(err.Error(), "lib-avx2.so") {
		t.Errorf("a missing library: %v", err)
	}
	files = moduleFiles(t)
	files["stray"] = nil
	if _, err := Module(files); err == nil || !strings.Contains(err.Error(), "stray") {
		t.Errorf("a stray file: %v", err)
	}
}

// TestVendoredSources checks that the tree holds exactly the packages that go
// list finds, and no tests.
func TestVendoredSources(t *testing.T) {
	t.Parallel()
	tool, err := toolchain.FindGo()
	if err != nil {
		t.Skip(err)
	}
	v, err := vendored()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool.Path, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", runtimeCLI)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for name := range v.files {
		if strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s belongs to tests", name)
		}
		if strings.HasSuffix(name, ".go") {
			have = append(have, filepath.ToSlash(filepath.Dir(name)))
		}
	}
	for p := range strings.FieldsSeq(string(out)) {
		if !slices.Contains(have, p) {
			t.Errorf("package %s is not in the tree; a third-party one needs go run ./tools/gen/vendordeps", p)
		}
		if !strings.Contains(string(v.files["modules.txt"]), p+"\n") {
			t.Errorf("package %s is not in modules.txt", p)
		}
	}
}

// TestThinBinary asks go what the generated module links: of this module all
// packages of the runtime, and nothing else. So the runtime has nothing that a
// binary does not need, and a binary nothing of the compiler.
func TestThinBinary(t *testing.T) {
	t.Parallel()
	tool, err := toolchain.FindGo()
	if err != nil {
		t.Skip(err)
	}
	files, err := Module(moduleFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := WriteModule(dir, files); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool.Path, "list", "-mod=vendor", "-deps", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	linked := map[string]bool{runtimeAPI: true} // what a generated package begins with in place of the command line
	for p := range strings.FieldsSeq(string(out)) {
		linked[p] = true
		if strings.HasPrefix(p, modulePath) && !strings.HasPrefix(p, runtimePath) {
			t.Errorf("a binary links %s, which is of the compiler", p)
		}
	}
	carried, err := fs.Glob(runtime.Sources, "*/*.go")
	deeper, err2 := fs.Glob(runtime.Sources, "*/*/*.go")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(carried, deeper...) {
		if p := runtimePath + path.Dir(name); !linked[p] && !strings.HasSuffix(name, "_test.go") {
			linked[p] = true // said once
			t.Errorf("no binary links %s: it belongs to the compiler, or nowhere", p)
		}
	}
}

// TestArchiveVersions holds the committed archive to the versions of go.mod.
func TestArchiveVersions(t *testing.T) {
	t.Parallel()
	v, err := vendored()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\ngo "+runtime.GoVersion+"\n") {
		t.Errorf("runtime.GoVersion is %s, go.mod asks for another", runtime.GoVersion)
	}
	for _, m := range v.modules {
		if m.path == modulePath {
			continue
		}
		if !strings.Contains(string(mod), "\t"+m.path+" "+m.version) {
			t.Errorf("deps.zip has %s %s, go.mod another version; run go run ./tools/gen/vendordeps", m.path, m.version)
		}
		licensed := false
		for name := range v.files {
			base := filepath.Base(name)
			licensed = licensed || strings.HasPrefix(name, m.path) && (base == "LICENSE" || base == "COPYING")
		}
		if !licensed {
			t.Errorf("deps.zip lacks the license of %s", m.path)
		}
	}
}

// TestArchiveContents compares the archive's files with those of the module
// cache, which go verified against go.sum.
func TestArchiveContents(t *testing.T) {
	t.Parallel()
	tool, err := toolchain.FindGo()
	if err != nil {
		t.Skip(err)
	}
	v, err := vendored()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range v.modules {
		if m.path == modulePath {
			continue
		}
		out, err := exec.Command(tool.Path, "list", "-m", "-f", "{{.Dir}}", m.path).Output()
		dir := strings.TrimSpace(string(out))
		if err != nil || dir == "" {
			t.Fatalf("%s is not in the module cache: %v", m.path, err)
		}
		for name, data := range v.files {
			rest, ok := strings.CutPrefix(name, m.path+"/")
			if !ok {
				continue
			}
			want, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(rest)))
			if err != nil || !bytes.Equal(data, want) {
				t.Errorf("%s differs from the module's file (%v); run go run ./tools/gen/vendordeps", name, err)
			}
		}
	}
}

// TestBuildBinary builds a binary in different places with nothing but its own sources, and
// runs it. The first place is the cache that tests share, which may have it from an earlier run.
func TestBuildBinary(t *testing.T) {
	if _, err := toolchain.FindGo(); err != nil {
		t.Skip(err)
	}
	files := moduleFiles(t)
	var bins [2][]byte
	for i, dir := range []string{"", t.TempDir()} {
		cache, err := toolchain.OpenCache(dir)
		if err != nil {
			t.Fatal(err)
		}
		path, err := BuildBinary(t.Context(), cache, files)
		if err != nil {
			t.Fatal(err)
		}
		if bins[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		if again, err := BuildBinary(t.Context(), cache, files); err != nil || again != path {
			t.Errorf("unchanged files: %q, %v", again, err)
		}
		out, err := exec.Command(path, "info", "--ir").CombinedOutput()
		if err != nil || string(out) != "module tiny {\n}\n" {
			t.Errorf("info --ir: %v, %q", err, out)
		}
		if left, err := os.ReadDir(filepath.Join(cache.Dir, "tmp")); dir != "" && (err != nil || len(left) != 0) {
			t.Errorf("left behind: %v %v", left, err)
		}
		cache.Close()
	}
	if !bytes.Equal(bins[0], bins[1]) {
		t.Error("two builds gave different bytes")
	}
	if dir := t.TempDir(); bytes.Contains(bins[0], []byte(filepath.Dir(dir))) {
		t.Error("the binary names this machine's temporary folder")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(bins[0], []byte(strings.TrimSpace(string(root))+"/src")) {
		t.Error("the binary names where Go is installed")
	}
}

func TestCommandName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"SmolLM2-135M": "smollm2-135m", "a b/c": "a-b-c", "ü": "model", "..": "model"} {
		if got := commandName(in); got != want {
			t.Errorf("%q: %q, expected %q", in, got, want)
		}
	}
}
