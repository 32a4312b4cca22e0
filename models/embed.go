// Package models is the model library: a model spec per model, and the common
// settings of model families (families), as data.
package models

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// The demo folder contains its weights and tokenizer.
//
//go:embed *.yaml families modules demo*
var files embed.FS

// FS contains NAME.yaml, the folders they refer to, and families/FAMILY.yaml.
func FS() fs.FS { return files }

// Lookup returns the model spec of the named model. It returns an error for an
// unknown name.
func Lookup(name string) ([]byte, error) {
	b, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no model %q in the library", name)
	}
	return b, nil
}

// Names returns the names of the models, sorted.
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

// Modules returns the texts of the files of modules, by name.
var Modules = sync.OnceValue(func() map[string]string { return texts("modules/*.ifl", "") })

// ModuleNames returns the names that instances of modules have in the IR.
func ModuleNames() string { return text("modules/names.yaml") }

// NetworkTypes returns what types of networks stand for.
func NetworkTypes() string { return text("modules/types.yaml") }

// Families returns the texts of the family files by name.
var Families = sync.OnceValue(func() map[string]string { return texts("families/*.yaml", ".yaml") })

// FamilyModules returns the texts of the modules that single families have, by name of the family.
var FamilyModules = sync.OnceValue(func() map[string]string { return texts("families/*.ifl", ".ifl") })

// texts returns the texts of the files of a pattern, by their names without a suffix.
func texts(pattern, suffix string) map[string]string {
	found, err := fs.Glob(files, pattern)
	if err != nil {
		panic("bug: " + err.Error())
	}
	out := map[string]string{}
	for _, f := range found {
		out[strings.TrimSuffix(path.Base(f), suffix)] = text(f)
	}
	return out
}

func text(file string) string {
	b, err := files.ReadFile(file)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(b)
}
