// Command vendordeps writes codegen/deps/deps.zip: the third-party packages
// that a per-model binary is linked with, as a vendor folder, from the module
// cache. Run it from the module's root after changing a dependency or what the
// runtime imports:
//
//	go run ./tools/gen/vendordeps
//
// The archive holds only files that some supported system compiles, each
// module's license, and modules.txt in the form that go build -mod=vendor
// checks. The same inputs give the same bytes.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// root is the package whose dependencies are collected.
const root = "./runtime/cli"

// A target is a system for binaries; cgo: shared libraries, and programs that
// import a model's package.
type target struct {
	os, arch string
	cgo      bool
}

var targets = []target{
	{"linux", "amd64", false}, {"linux", "arm64", false}, {"darwin", "amd64", false}, {"darwin", "arm64", false},
	{"linux", "amd64", true}, {"linux", "arm64", true}, {"darwin", "amd64", true}, {"darwin", "arm64", true},
}

// licenses are the names of files that must accompany the sources.
var licenses = []string{"LICENSE", "COPYING", "LICENSE.md", "LICENSE.txt", "PATENTS", "NOTICE"}

// listed is the used part of go list's output.
type listed struct {
	ImportPath, Dir            string
	Standard                   bool
	GoFiles, CgoFiles          []string
	IgnoredGoFiles             []string
	SFiles, HFiles, EmbedFiles []string
	Module                     *struct{ Path, Version, GoVersion, Dir string }
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("vendordeps: ")
	files, err := collect()
	if err == nil {
		err = write(filepath.Join("codegen", "deps", "deps.zip"), files)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// collect reads all files of the archive.
func collect() (map[string][]byte, error) {
	files := map[string][]byte{}
	packages := map[string]map[string]bool{} // "module version\x00go" → import paths
	for _, t := range targets {
		list, err := goList(t)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			if p.Standard || p.Module == nil || p.Module.Version == "" {
				continue
			}
			if err := addPackage(files, p, t); err != nil {
				return nil, err
			}
			key := p.Module.Path + " " + p.Module.Version + "\x00" + p.Module.GoVersion
			if packages[key] == nil {
				packages[key] = map[string]bool{}
			}
			packages[key][p.ImportPath] = true
		}
	}
	files["modules.txt"] = modulesText(packages)
	return files, nil
}

// goList lists the dependencies on one system.
func goList(t target) ([]listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-json", root)
	cgo := "0"
	if t.cgo {
		cgo = "1"
	}
	cmd.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED="+cgo)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s/%s: %w", t.os, t.arch, err)
	}
	var list []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// addPackage adds a package's files and its module's licenses, including files
// for later Go versions (newer Unicode tables), because the user's version may
// be later.
func addPackage(files map[string][]byte, p listed, t target) error {
	later := build.Default
	later.GOOS, later.GOARCH, later.CgoEnabled = t.os, t.arch, t.cgo
	for v := range 100 {
		later.ReleaseTags = append(later.ReleaseTags, fmt.Sprintf("go1.%d", v))
	}
	names := slices.Concat(p.GoFiles, p.CgoFiles, p.SFiles, p.HFiles, p.EmbedFiles)
	for _, name := range p.IgnoredGoFiles {
		if ok, err := later.MatchFile(p.Dir, name); err == nil && ok && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		files[path.Join(p.ImportPath, name)] = data
	}
	found := false
	for _, name := range licenses {
		data, err := os.ReadFile(filepath.Join(p.Module.Dir, name))
		if err != nil {
			continue
		}
		found = true
		files[path.Join(p.Module.Path, name)] = data
	}
	if !found {
		return fmt.Errorf("%s: no license file among %s", p.Module.Path, strings.Join(licenses, ", "))
	}
	return nil
}

// modulesText returns vendor/modules.txt.
func modulesText(packages map[string]map[string]bool) []byte {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(packages)) {
		module, goVersion, _ := strings.Cut(key, "\x00")
		fmt.Fprintf(&b, "# %s\n## explicit; go %s\n", module, goVersion)
		for _, p := range slices.Sorted(maps.Keys(packages[key])) {
			fmt.Fprintln(&b, p)
		}
	}
	return []byte(b.String())
}

// write writes the archive, sorted by name and without times.
func write(to string, files map[string][]byte) error {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		if _, err := w.Write(files[name]); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	fmt.Printf("%s: %d files, %d bytes\n", to, len(files), b.Len())
	return os.WriteFile(to, b.Bytes(), 0o644)
}
