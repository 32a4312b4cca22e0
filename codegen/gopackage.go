package codegen

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"strings"
	"unicode"

	"github.com/dave/jennifer/jen"

	"github.com/iflowc/iflowc/runtime/manifest"
)

// runtimeModel is the package that a generated package hands on to.
const runtimeModel = modulePath + "/runtime/model"

// Package makes a Go module with one importable package, named after the model,
// from the files that Module gets. The runtime is in it below internal, under
// the module's own path, so that a program which imports it needs nothing of
// iflowc; third-party packages are required in go.mod, and vendored for the
// module's own use.
func Package(files map[string][]byte) (map[string][]byte, error) {
	m, err := readManifest(files)
	if err != nil {
		return nil, err
	}
	v, err := vendored()
	if err != nil {
		return nil, err
	}
	module := commandName(m.Name)
	inside := module + "/internal/iflowc"
	out := maps.Clone(files)
	if err := v.copyPackages(out, runtimeModel, inside); err != nil {
		return nil, err
	}
	if out[packageName(m.Name)+".go"], err = packageGlue(m, inside); err != nil {
		return nil, err
	}
	out["example/main.go"] = []byte(fmt.Sprintf(packageExample, module))
	out["go.mod"] = v.without(modulePath).goMod(module)
	out["vendor/modules.txt"] = []byte(removeModule(string(v.files["modules.txt"]), modulePath))
	return out, nil
}

// packageName makes a model's name a Go package's.
func packageName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
	if clean == "" || clean[0] <= '9' {
		return "model" + clean
	}
	return clean
}

// copyPackages copies a package and those that it reaches: this module's below
// internal, with their imports changed, the others below vendor.
func (v *vendorTree) copyPackages(out map[string][]byte, root, inside string) error {
	done := map[string]bool{}
	for todo := []string{root}; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if done[p] {
			continue
		}
		done[p] = true
		for name, text := range v.files {
			if path.Dir(name) != p {
				continue
			}
			if strings.HasSuffix(name, ".go") {
				imports, err := importsOf(name, text)
				if err != nil {
					return err
				}
				todo = append(todo, imports...) // the standard library's have no files here
				text = bytes.ReplaceAll(text, []byte(`"`+modulePath+"/"), []byte(`"`+inside+"/"))
			}
			if rest, ours := strings.CutPrefix(name, modulePath+"/"); ours {
				out["internal/iflowc/"+rest] = text
			}
		}
	}
	for name, text := range v.files { // whole: modules.txt lists their packages
		if !strings.HasPrefix(name, modulePath+"/") {
			out["vendor/"+name] = text
		}
	}
	return nil
}

// without is the tree as if it did not hold a module.
func (v *vendorTree) without(module string) *vendorTree {
	w := &vendorTree{goVersion: v.goVersion}
	for _, m := range v.modules {
		if m.path != module {
			w.modules = append(w.modules, m)
		}
	}
	return w
}

// removeModule takes a module's entry out of a modules.txt.
func removeModule(list, module string) string {
	var b strings.Builder
	skip := false
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "# ") {
			skip = strings.HasPrefix(line, "# "+module+" ")
		}
		if !skip {
			b.WriteString(line)
		}
	}
	return b.String()
}

// packageGlue writes the package: the model's files, the names of the runtime's
// types, and Open.
func packageGlue(m *manifest.Manifest, inside string) ([]byte, error) {
	model, binary := inside+"/runtime/model", inside+"/runtime/binary"
	name := packageName(m.Name)
	f := jen.NewFilePathName(commandName(m.Name), name)
	header(f, m)
	f.PackageComment(fmt.Sprintf("Package %s is the model %s. Its weights are in a file of their own, which Open reads.", name, m.Name))
	f.ImportName(model, "model")
	f.ImportName(binary, "binary")
	value := embedAll(f, m)
	for _, t := range []struct{ name, doc string }{
		{"Model", "A Model is ready to generate, chat and embed, from as many goroutines as there are."},
		{"Options", "Options say how the model is run; the zero value chooses."},
		{"Sampling", "Sampling says how a text goes on; the zero value picks the likeliest token."},
		{"Message", "A Message is one turn of a conversation."},
		{"Info", "Info is what the model is."},
	} {
		f.Comment(t.doc)
		f.Type().Id(t.name).Op("=").Qual(model, t.name)
		f.Line()
	}
	f.Comment("Open reads the weights, which options name or which lie beside the running program\n// as its name with .weights, and starts the model's threads. Close ends them.")
	f.Func().Id("Open").Params(jen.Id("options").Id("Options")).Params(jen.Op("*").Id("Model"), jen.Error()).Block(
		jen.List(jen.Id("path"), jen.Err()).Op(":=").Qual("os", "Executable").Call(),
		jen.If(jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Nil(), jen.Err())),
		jen.Return(jen.Qual(model, "Open").Call(jen.Qual(binary, "Embedded").Values(value), jen.Id("path"), jen.Id("options"))),
	)
	return render(f)
}

const packageExample = `// Command example continues the text of its arguments.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	model "%[1]s"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: example WEIGHTS TEXT…")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m, err := model.Open(model.Options{Weights: os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for text, err := range m.Generate(ctx, strings.Join(os.Args[2:], " "), model.Sampling{MaxTokens: 64}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
	}
	fmt.Println()
}
`
