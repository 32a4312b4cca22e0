package codegen

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/runtime"
)

// depsArchive holds the third-party packages that a binary is linked with;
// tools/gen/vendordeps writes it.
//
//go:embed deps/deps.zip
var depsArchive []byte

// modulePath is the path of this module. A binary's module requires it under a
// special version, because it is only vendored.
const (
	modulePath    = "github.com/iflowc/iflowc"
	moduleVersion = "v0.0.0"
	runtimePath   = modulePath + "/runtime/" // of the embedded runtime packages
)

// A vendorTree is the vendor folder of every per-model module.
type vendorTree struct {
	files   map[string][]byte // by path below vendor
	modules []vendoredModule  // by path
}

type vendoredModule struct{ path, version string }

// vendored makes the tree on first use; callers must not change it.
var vendored = sync.OnceValues(func() (*vendorTree, error) {
	v := &vendorTree{files: map[string][]byte{}}
	list, err := v.addArchive(depsArchive)
	if err != nil {
		return nil, fmt.Errorf("bug: deps.zip: %w; run go run ./tools/gen/vendordeps", err)
	}
	packages, err := v.addRuntime(runtime.Sources)
	if err != nil {
		return nil, fmt.Errorf("bug: the runtime's sources: %w", err)
	}
	own := fmt.Sprintf("# %s %s\n## explicit; go %s\n%s\n", modulePath, moduleVersion, runtime.GoVersion, strings.Join(packages, "\n"))
	v.files["modules.txt"] = []byte(insertModule(list, own))
	v.modules = append(v.modules, vendoredModule{modulePath, moduleVersion})
	slices.SortFunc(v.modules, func(a, b vendoredModule) int { return strings.Compare(a.path, b.path) })
	return v, nil
})

// addArchive unpacks the third-party packages and returns their modules.txt.
func (v *vendorTree) addArchive(data []byte) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return "", err
		}
		v.files[f.Name] = text
	}
	list := string(v.files["modules.txt"])
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "#" {
			v.modules = append(v.modules, vendoredModule{fields[1], fields[2]})
		}
	}
	if len(v.modules) == 0 {
		return "", fmt.Errorf("modules.txt names no module")
	}
	return list, nil
}

// insertModule inserts a module's entry in the order of paths.
func insertModule(list, entry string) string {
	entries := strings.SplitAfter(list, "\n")
	at := len(entries)
	for i, line := range entries {
		if strings.HasPrefix(line, "# ") && line > entry {
			at = i
			break
		}
	}
	return strings.Join(entries[:at], "") + entry + strings.Join(entries[at:], "")
}

// addRuntime copies runtimeCLI, runtimeAPI and their dependencies in this
// module, without tests, and lists their import paths.
func (v *vendorTree) addRuntime(sources fs.FS) ([]string, error) {
	found := map[string]bool{}
	for todo := []string{runtimeCLI, runtimeAPI}; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if found[p] {
			continue
		}
		found[p] = true
		imports, err := v.addPackage(sources, p)
		if err != nil {
			return nil, err
		}
		todo = append(todo, imports...)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// addPackage copies one package and returns its imports within this module.
func (v *vendorTree) addPackage(sources fs.FS, importPath string) ([]string, error) {
	dir, inside := strings.CutPrefix(importPath, runtimePath)
	if !inside {
		return nil, fmt.Errorf("%s is imported, which is of the compiler", importPath)
	}
	files, err := fs.ReadDir(sources, dir)
	if err != nil {
		return nil, fmt.Errorf("%s is imported but not carried: %w", importPath, err)
	}
	var own []string
	for _, f := range files {
		if f.IsDir() || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		text, err := fs.ReadFile(sources, path.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		v.files[path.Join(importPath, f.Name())] = text
		if !strings.HasSuffix(f.Name(), ".go") { // an embedded file
			continue
		}
		imports, err := importsOf(f.Name(), text)
		if err != nil {
			return nil, err
		}
		for _, i := range imports {
			if strings.HasPrefix(i, modulePath+"/") {
				own = append(own, i)
			}
		}
	}
	return own, nil
}

// importsOf returns the import paths of a Go file.
func importsOf(name string, text []byte) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}
