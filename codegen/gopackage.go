package codegen

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"strings"
	"unicode"

	"github.com/dave/jennifer/jen"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// runtimeAPI is the package that a generated package is made from, so that its
// documentation has every type and method.
const runtimeAPI = modulePath + "/runtime/api"

// Package makes a Go module with one importable package, named after the model,
// from the files for Module. The runtime is below internal, under the module's
// own path, so that a program that imports the package needs nothing of iflowc.
// Third-party packages are required in go.mod, and vendored for builds of the
// module itself.
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
	if err := v.copyPackages(out, runtimeAPI, inside); err != nil {
		return nil, err
	}
	name := packageName(m.Name)
	if err := takeOver(out, "internal/iflowc/runtime/api/", name); err != nil {
		return nil, err
	}
	if out[name+".go"], err = packageGlue(m, inside); err != nil {
		return nil, err
	}
	out["example/main.go"] = []byte(fmt.Sprintf(packageExample, module))
	out["example_test.go"] = []byte(fmt.Sprintf(packageExamples, module, name))
	out["go.mod"] = v.without(modulePath).goMod(module)
	out["vendor/modules.txt"] = []byte(removeModule(string(v.files["modules.txt"]), modulePath))
	return out, nil
}

// packageName converts a model's name to the name of a Go package.
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

// copyPackages copies a package and its dependencies: this module's packages
// below internal, with changed imports, the others below vendor.
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
				todo = append(todo, imports...) // the standard library has no files here
				text = bytes.ReplaceAll(text, []byte(`"`+modulePath+"/"), []byte(`"`+inside+"/"))
			}
			if rest, ours := strings.CutPrefix(name, modulePath+"/"); ours {
				out["internal/iflowc/"+rest] = text
			}
		}
	}
	for name, text := range v.files { // complete modules: modules.txt lists their packages
		if !strings.HasPrefix(name, modulePath+"/") {
			out["vendor/"+name] = text
		}
	}
	return nil
}

// without returns the tree without a module.
func (v *vendorTree) without(module string) *vendorTree {
	w := &vendorTree{}
	for _, m := range v.modules {
		if m.path != module {
			w.modules = append(w.modules, m)
		}
	}
	return w
}

// removeModule removes a module's entry from a modules.txt.
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

// takeOver copies a folder's files into the package, under the package's name.
// Their Open is renamed; that of packageGlue calls it.
func takeOver(out map[string][]byte, folder, name string) error {
	opens := 0
	for file, text := range out {
		rest, ok := strings.CutPrefix(file, folder)
		if !ok {
			continue
		}
		delete(out, file)
		head, body, ok := strings.Cut(string(text), "\npackage api\n")
		if !ok {
			return fmt.Errorf("bug: %s is not of package api", file)
		}
		tags, _, _ := strings.Cut(head, "// Package") // packageGlue has the package comment
		opens += strings.Count(body, "\nfunc Open(")
		body = strings.NewReplacer("\n// Open ", "\n// open ", "\nfunc Open(", "\nfunc open(").Replace(body)
		out["iflowc_"+rest] = []byte(tags + "\npackage " + name + "\n" + body)
	}
	if opens != 1 {
		return fmt.Errorf("bug: %d functions Open below %s", opens, folder)
	}
	return nil
}

// packageGlue returns the source of the model's own part of the package: its
// files, and Open.
func packageGlue(m *manifest.Manifest, inside string) ([]byte, error) {
	binary := inside + "/runtime/binary"
	name := packageName(m.Name)
	f := jen.NewFilePathName(commandName(m.Name), name)
	header(f, m)
	f.PackageComment(fmt.Sprintf(packageDoc, name, m.Name))
	f.ImportName(binary, "binary")
	value := embedAll(f, m)
	f.Comment("Open reads the weights, which the options name or which lie beside the running program as\nits name with .weights, and starts the model's threads. Close ends them.")
	f.Func().Id("Open").Params(jen.Id("options").Id("Options")).Params(jen.Op("*").Id("Model"), jen.Error()).Block(
		jen.List(jen.Id("path"), jen.Err()).Op(":=").Qual("os", "Executable").Call(),
		jen.If(jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Nil(), jen.Err())),
		jen.Return(jen.Id("open").Call(jen.Qual(binary, "Embedded").Values(value), jen.Id("path"), jen.Id("options"))),
	)
	return render(f)
}

const packageDoc = `Package %s is the model %s. Open it once, then generate, chat and embed from
as many goroutines as there are: what they ask for at the same time shares the
model's steps. Its weights are in a file of their own; its code is in here, and
needs no C compiler and no cgo.`

// packageExamples are compiled with the package's tests and shown in its
// documentation.
const packageExamples = `package %[2]s_test

import (
	"context"
	"fmt"
	"log"

	model "%[1]s"
)

func Example() {
	m, err := model.Open(model.Options{Weights: "%[2]s.weights"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for text, err := range m.Generate(context.Background(), "Once upon a time", model.Sampling{MaxTokens: 64}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
	}
}

func ExampleModel_Chat() {
	m, err := model.Open(model.Options{Weights: "%[2]s.weights"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	question := []model.Message{{Role: "user", Content: "Why is the sky blue?"}}
	for text, err := range m.Chat(context.Background(), question, model.Sampling{Temperature: 0.7, Seed: 1}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
	}
}

func ExampleModel_Embed() {
	m, err := model.Open(model.Options{Weights: "%[2]s.weights"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	vectors, err := m.Embed(context.Background(), "a cat", "a kitten")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(vectors), "vectors of", len(vectors[0]), "numbers")
}
`

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
