package compiler

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/kit/destination"
)

// defaultOut returns the default name of the output.
func defaultOut(name, emit string) string {
	switch emit {
	case "lib":
		return "lib" + name + ".so"
	case "package":
		return name + "-package"
	case "sources":
		return name + "-sources"
	}
	return name
}

// emit links the result and puts it in place, with the weights beside it.
func (p *Program) emit(ctx context.Context) error {
	switch p.opt.Emit {
	case "lib":
		return p.emitLibrary(ctx)
	case "package":
		return p.emitPackage()
	}
	p.opt.progress(Progress{Stage: "linking the binary"})
	bin, err := codegen.BuildBinary(ctx, p.cache, p.files)
	if err != nil {
		return err
	}
	if p.opt.EmbedWeights {
		return p.embed(bin)
	}
	return p.place(bin, nil)
}

// emitLibrary makes the shared library and its header.
func (p *Program) emitLibrary(ctx context.Context) error {
	p.opt.progress(Progress{Stage: "linking the library"})
	lib, err := codegen.BuildLibrary(ctx, p.cache, p.files, p.cc.CC.Path)
	if err != nil {
		return err
	}
	return p.place(lib, codegen.Header)
}

// libraryHeader returns the path of a library's header.
func libraryHeader(out string) string { return filepath.Join(filepath.Dir(out), "iflowc.h") }

// embed makes a binary that contains the weights.
func (p *Program) embed(bin string) error {
	st, err := os.Stat(p.whole.packed)
	if err != nil {
		return err
	}
	p.result.WeightBytes = st.Size()
	if err := packed.Embed(bin, p.whole.packed, p.opt.Out); err != nil {
		return err
	}
	return p.measure()
}

// place puts the weights, the result and, for a library, its header in place.
func (p *Program) place(program string, header []byte) error {
	o := &outputs{cache: p.cache, link: p.opt.inCache}
	defer o.discard()
	if err := p.placeWeights(o); err != nil {
		return err
	}
	if err := o.add(program, p.opt.Out, 0o755, false); err != nil {
		return err
	}
	if header != nil {
		if err := o.write(libraryHeader(p.opt.Out), header, 0o644); err != nil {
			return err
		}
	}
	if err := o.commit(); err != nil {
		return err
	}
	return p.measure()
}

// measure adds the result's size.
func (p *Program) measure() error {
	st, err := os.Stat(p.opt.Out)
	if err == nil {
		p.result.BinaryBytes = st.Size()
	}
	return err
}

// checkPackage returns an error if a package must not be written to a folder,
// because it contains something else.
func checkPackage(out string) error {
	if err := destination.CheckFolder("-o", out); err != nil {
		return err
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) == 0 {
		return nil
	}
	old, err := os.ReadFile(filepath.Join(out, "model.json"))
	if err != nil || !strings.Contains(string(old), `"compiler"`) {
		return fmt.Errorf("-o %s: the folder holds something that is not a package of iflowc; name another one", out)
	}
	return nil
}

// emitPackage writes the Go module to a folder, with the weights in it. prepare
// has checked that the folder contains nothing else.
func (p *Program) emitPackage() error {
	out := p.opt.Out
	files, err := codegen.Package(p.files)
	if err != nil {
		return err
	}
	for _, name := range []string{"internal", "vendor"} { // of an earlier package
		if err := os.RemoveAll(filepath.Join(out, name)); err != nil {
			return err
		}
	}
	if err := codegen.WriteModule(out, files); err != nil {
		return fmt.Errorf("writing the package: %w", err)
	}
	for _, data := range files {
		p.result.BinaryBytes += int64(len(data))
	}
	o := &outputs{cache: p.cache}
	defer o.discard()
	if err := p.placeWeights(o); err != nil {
		return err
	}
	return o.commit()
}

// weightsPath returns the path of weights beside the result, with an ending; "": they are
// in it.
func (p *Program) weightsPath(ending string) string {
	switch {
	case p.opt.EmbedWeights:
		return ""
	case p.opt.Emit == "package":
		return filepath.Join(p.opt.Out, p.Spec.Name) + "." + ending
	}
	return p.opt.Out + "." + ending
}

// placeWeights adds the packed weights to the outputs, and adds up their sizes.
func (p *Program) placeWeights(o *outputs) error {
	if p.opt.NoWeights {
		return nil
	}
	p.result.Weights = p.weightsPath("weights")
	if p.ranks != nil {
		p.result.Weights += ".*"
	}
	for i, r := range p.parts() {
		info, err := os.Stat(r.packed)
		if err != nil {
			return err
		}
		p.result.WeightBytes += info.Size()
		if err := o.add(r.packed, p.weightsPath(p.ending(i)), 0o644, p.ranks == nil); err != nil { // ranks may share a file
			return err
		}
	}
	return nil
}
