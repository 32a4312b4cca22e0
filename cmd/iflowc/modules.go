//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/spec"
)

type modulesCmd struct {
	Name   string `arg:"" optional:"" name:"module" help:"Module to print (default: a list of all)."`
	Family string `placeholder:"FAMILY" help:"Count the modules that this family of models has of its own, which may replace others."`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run lists the modules of the library, or prints one.
func (c *modulesCmd) Run() error {
	lib, err := spec.Modules(c.Family)
	if err != nil {
		return usageError{err}
	}
	if c.Name == "" {
		return c.list(lib)
	}
	m, err := lib.Module(c.Name)
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	_, err = fmt.Println(m.Text)
	return err
}

func (c *modulesCmd) list(lib *expand.Library) error {
	list, err := lib.Modules()
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(list)
	}
	var b strings.Builder
	file := ""
	for _, m := range list {
		if m.File != file {
			file = m.File
			fmt.Fprintf(&b, "%s\n", file)
		}
		fmt.Fprintf(&b, "  %-24s %s\n", m.Name, firstSentence(m))
	}
	_, err = fmt.Fprintf(&b, "\n\"iflowc modules NAME\" prints a module.\n")
	if err == nil {
		_, err = os.Stdout.WriteString(b.String())
	}
	return err
}

// firstSentence is the first sentence of a module's documentation, without its name.
func firstSentence(m *expand.Module) string {
	doc := strings.TrimPrefix(m.Doc, m.Name+" ")
	for i := range doc {
		if rest := doc[i:]; rest == "." || strings.HasPrefix(rest, ". ") && !strings.HasSuffix(doc[:i], " al") {
			return doc[:i]
		}
	}
	return doc
}

// Help shows both uses.
func (modulesCmd) Help() string {
	return `Modules are the text that models are made of.

Examples:

  iflowc modules
  iflowc modules attention_inputs
  iflowc modules --family esm token_embedding
  iflowc modules --json`
}
