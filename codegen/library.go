package codegen

import (
	"context"
	_ "embed"
	"maps"

	"github.com/dave/jennifer/jen"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// runtimeBinary is the package with the type of embedded files.
const runtimeBinary = modulePath + "/runtime/binary"

// Header is the C interface of a model as a shared library.
//
//go:embed clib/iflowc.h
var Header []byte

// exports implements the functions of Header in Go.
//
//go:embed clib/exports.go.txt
var exports []byte

// LibraryModule is like Module, for a shared library with the functions of
// Header.
func LibraryModule(files map[string][]byte) (map[string][]byte, error) {
	m, err := readManifest(files)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(files)
	if out["embedded.go"], err = libraryGlue(m); err != nil {
		return nil, err
	}
	out["exports.go"], out["iflowc.h"] = exports, Header
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

// libraryGlue returns the source that embeds the model's files for exports.
func libraryGlue(m *manifest.Manifest) ([]byte, error) {
	f := jen.NewFile("main")
	header(f, m)
	f.ImportName(runtimeBinary, "binary")
	value := embedAll(f, m)
	f.Comment("embedded is what the library carries.")
	f.Func().Id("embedded").Params().Qual(runtimeBinary, "Embedded").Block(
		jen.Return(jen.Qual(runtimeBinary, "Embedded").Values(value)),
	)
	return render(f)
}

// BuildLibrary builds the shared library of a model for this system with a C
// compiler, and returns its path in the cache.
func BuildLibrary(ctx context.Context, cache *toolchain.Cache, files map[string][]byte, cc string) (string, error) {
	module, err := LibraryModule(files)
	if err != nil {
		return "", err
	}
	return buildModule(ctx, cache, module, "library 1 "+cc, func(tool *toolchain.GoTool, src, out string, target toolchain.Target) error {
		return tool.BuildShared(ctx, src, out, target, cc)
	})
}
