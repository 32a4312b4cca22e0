package codegen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime"
)

// Module completes the files of a per-model Go module: model.json,
// tokenizer.bin, model.ir, model.yaml and the libraries that model.json names.
// It adds main.go, go.mod and a vendor folder with the runtime and its
// dependencies, so that go build needs nothing else.
func Module(files map[string][]byte) (map[string][]byte, error) {
	m, err := readManifest(files)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(files)
	if out["main.go"], err = Glue(m); err != nil {
		return nil, err
	}
	v, err := vendored()
	if err != nil {
		return nil, err
	}
	for name, data := range v.files {
		out["vendor/"+name] = data
	}
	out["go.mod"] = v.goMod("model/" + commandName(m.Name))
	return out, nil
}

// WriteModule writes a module's files below dir.
func WriteModule(dir string, files map[string][]byte) error {
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// BuildBinary builds the per-model binary from its files (see Module) for the
// system in GOOS and GOARCH, and returns its path in the cache. It does not
// rebuild the same files with the same Go.
func BuildBinary(ctx context.Context, cache *toolchain.Cache, files map[string][]byte) (string, error) {
	module, err := Module(files)
	if err != nil {
		return "", err
	}
	return buildModule(ctx, cache, module, "binary 1", func(tool *toolchain.GoTool, src, out string, target toolchain.Target) error {
		return tool.Build(ctx, src, out, target)
	})
}

// buildModule writes a module's files and builds them with compile, unless the
// cache has the result.
func buildModule(ctx context.Context, cache *toolchain.Cache, module map[string][]byte, kind string,
	compile func(tool *toolchain.GoTool, src, out string, target toolchain.Target) error) (string, error) {
	tool, err := toolchain.FindGo()
	if err != nil {
		return "", err
	}
	target := toolchain.TargetFromEnv()
	info, err := os.Stat(tool.Path)
	if err != nil {
		return "", err
	}
	parts := []string{kind, target.OS, target.Arch, tool.Path, fmt.Sprint(info.Size(), info.ModTime().UnixNano())}
	shared := slices.Clone(parts) // by all models
	for _, name := range slices.Sorted(maps.Keys(module)) {
		sum := sha256.Sum256(module[name])
		file := []string{name, hex.EncodeToString(sum[:])}
		parts = append(parts, file...)
		if strings.HasPrefix(name, "vendor/") {
			shared = append(shared, file...)
		}
	}
	return cache.Make("bin", toolchain.Key(parts...), "", func(dir, out string) error {
		src := filepath.Join(dir, "src")
		if err := WriteModule(src, module); err != nil {
			return fmt.Errorf("writing the binary's sources: %w", err)
		}
		// The first build also compiles the runtime and Go's library, which Go keeps: 50 CPU
		// seconds. Builds at the same time would each compile them.
		return cache.FirstAlone(ctx, toolchain.Key(shared...), func() error { return compile(tool, src, out, target) })
	})
}

// goMod writes the module file of a per-model binary.
func (v *vendorTree) goMod(path string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "module %s\n\ngo %s\n\nrequire (\n", path, runtime.GoVersion)
	for _, m := range v.modules {
		fmt.Fprintf(&b, "\t%s %s\n", m.path, m.version)
	}
	b.WriteString(")\n")
	return []byte(b.String())
}
