// Package models is the library: a model spec per model, and what families
// of models have in common (families), as data.
package models

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The demo's folder holds its weights and tokenizer.
//
//go:embed *.yaml families demo*
var files embed.FS

// FS holds NAME.yaml, the folders they refer to, and families/FAMILY.yaml.
func FS() fs.FS { return files }

// Lookup returns the model spec of a model of the library by its name.
func Lookup(name string) ([]byte, error) {
	b, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no model %q in the library", name)
	}
	return b, nil
}

// Names lists the models of the library.
func Names() []string {
	found, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic("bug: " + err.Error())
	}
	var names []string
	for _, f := range found {
		names = append(names, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	return names
}

// Families returns every family file by its name.
func Families() map[string][]byte {
	found, err := fs.Glob(files, "families/*.yaml")
	if err != nil {
		panic("bug: " + err.Error())
	}
	out := map[string][]byte{}
	for _, f := range found {
		b, err := files.ReadFile(f)
		if err != nil {
			panic("bug: " + err.Error())
		}
		out[strings.TrimSuffix(path.Base(f), ".yaml")] = b
	}
	return out
}
