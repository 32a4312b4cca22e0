package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
)

// emitted is what compile calls its result unless -o says.
func emitted(name, emit string) string {
	switch emit {
	case "lib":
		return "lib" + name + ".so"
	case "package":
		return name + "-package"
	}
	return name
}

// emitLibrary puts the shared library at out, its header and its weights beside
// it.
func (p *program) emitLibrary(ctx context.Context, cache *toolchain.Cache, cc, packed, out string) (*summary, error) {
	if p.flags.EmbedWeights {
		return nil, usageError{fmt.Errorf("--embed-weights: a library reads its weights from a file")}
	}
	lib, err := codegen.BuildLibrary(ctx, cache, p.files, cc)
	if err != nil {
		return nil, err
	}
	header := filepath.Join(filepath.Dir(out), "iflowc.h")
	if err := toolchain.WriteFile(header, codegen.Header, 0o644); err != nil {
		return nil, err
	}
	return p.place(lib, packed, out)
}

// emitPackage writes the Go module to the folder out, with the weights in it:
// the files packed, by the endings of their names. A folder that holds something
// else is left alone.
func (p *program) emitPackage(packed, endings []string, out string) (*summary, error) {
	if p.flags.EmbedWeights {
		return nil, usageError{fmt.Errorf("--embed-weights: a package reads its weights from a file")}
	}
	files, err := codegen.Package(p.files)
	if err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		old, err := os.ReadFile(filepath.Join(out, "model.json"))
		if err != nil || !strings.Contains(string(old), `"compiler"`) {
			return nil, usageError{fmt.Errorf("-o %s: the folder holds something that is not a package of iflowc; name another one", out)}
		}
		if err := os.RemoveAll(filepath.Join(out, "internal")); err != nil {
			return nil, err
		}
		if err := os.RemoveAll(filepath.Join(out, "vendor")); err != nil {
			return nil, err
		}
	}
	if err := codegen.WriteModule(out, files); err != nil {
		return nil, fmt.Errorf("writing the package: %w", err)
	}
	name := filepath.Join(out, p.m.Spec.Name)
	s := &summary{Binary: out, Regions: p.cpu.Regions, Weights: name + ".weights"}
	if len(packed) > 1 {
		s.Weights += ".*"
	}
	for _, data := range files {
		s.BinaryBytes += int64(len(data))
	}
	return s, s.placeWeights(packed, endings, name)
}

// placeWeights puts packed weights at name and their endings, and adds up their
// sizes.
func (s *summary) placeWeights(packed, endings []string, name string) error {
	for i, path := range packed {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.WeightBytes += info.Size()
		if err := placeFile(path, name+"."+endings[i], 0o644); err != nil {
			return err
		}
	}
	return nil
}
