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
func Modules() map[string]string {
	found, err := fs.Glob(files, "modules/*.ifl")
	if err != nil {
		panic("bug: " + err.Error())
	}
	out := map[string]string{}
	for _, f := range found {
		b, err := files.ReadFile(f)
		if err != nil {
			panic("bug: " + err.Error())
		}
		out[path.Base(f)] = string(b)
	}
	return out
}

// ModuleNames returns the names that instances of modules have in the IR.
func ModuleNames() []byte {
	b, err := files.ReadFile("modules/names.yaml")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return b
}

// NetworkTypes returns what types of networks stand for.
func NetworkTypes() []byte {
	b, err := files.ReadFile("modules/types.yaml")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return b
}

// Families returns the contents of every family file by name.
var Families = sync.OnceValue(func() map[string][]byte { return familyFiles(".yaml") })

// FamilyModules returns the texts of the modules that single families have, by name of the family.
var FamilyModules = sync.OnceValue(func() map[string][]byte { return familyFiles(".ifl") })

func familyFiles(ext string) map[string][]byte {
	found, err := fs.Glob(files, "families/*"+ext)
	if err != nil {
		panic("bug: " + err.Error())
	}
	out := map[string][]byte{}
	for _, f := range found {
		b, err := files.ReadFile(f)
		if err != nil {
			panic("bug: " + err.Error())
		}
		out[strings.TrimSuffix(path.Base(f), ext)] = b
	}
	return out
}
