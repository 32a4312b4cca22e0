package spec

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/models"
	"gopkg.in/yaml.v3"
)

// A family is one file of models/families. It describes the common part of an
// architecture's models, with expressions over config.json.
type family struct {
	name          string
	Doc           string            `yaml:"doc"`
	Architectures []string          `yaml:"architectures"` // config.json's model_type, GGUF's general.architecture
	Base          string            `yaml:"base"`          // read first; default: "generic"
	Hyper         yaml.Node         `yaml:"hyper"`
	Network       yaml.Node         `yaml:"network_structure"`
	Graph         string            `yaml:"graph"`
	Ignore        []string          `yaml:"ignore_tensors"`
	Aliases       map[string]string `yaml:"aliases"` // other names of parameters, which come first if config.json has both
	Only          only              `yaml:"only"`
	Never         never             `yaml:"never"`
	When          []familyWhen      `yaml:"when"`
	ScaledInGGUF  bool              `yaml:"scaled_in_gguf"` // GGUF files contain the factors on projections in the matrices

	// Hyper-parameters that make a decoder of one layer the layer for multi-token
	// prediction; nil: that of the base, if it has one.
	MTP map[string]any `yaml:"mtp"`
}

// A familyWhen adds settings to a family if config.json has the given values. An
// absent parameter equals null and false. If that matters, absent lists
// parameters that config.json must not contain at all, not even as null.
type familyWhen struct {
	If      map[string]any `yaml:"if"`
	Absent  []string       `yaml:"absent"`
	Present []string       `yaml:"present"` // parameters that config.json must contain, and not as null
	Refuse  string         `yaml:"refuse"`  // the error of a config.json with these values
	Only    only           `yaml:"only"`
	Never   never          `yaml:"never"`
	Hyper   yaml.Node      `yaml:"hyper"`
	Network yaml.Node      `yaml:"network_structure"`
	Ignore  []string       `yaml:"ignore_tensors"`
	Unread  []string       `yaml:"unread_tensors"` // patterns of tensors that transformers does not read then; a stored one is an error
}

// decodedFamilies are families by name.
var decodedFamilies sync.Map

// familyNamed returns the family of a file.
func familyNamed(name string) (*family, bool) {
	if f, ok := decodedFamilies.Load(name); ok {
		return f.(*family), true
	}
	src, ok := models.Families()[name]
	if !ok {
		return nil, false
	}
	f := &family{name: name}
	dec := yaml.NewDecoder(strings.NewReader(src))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil {
		panic("bug: models/families/" + name + ".yaml: " + err.Error())
	}
	first, _ := decodedFamilies.LoadOrStore(name, f)
	return first.(*family), true
}

// families returns all families by name.
var families = sync.OnceValue(func() map[string]*family {
	out := map[string]*family{}
	for name := range models.Families() {
		out[name], _ = familyNamed(name)
	}
	return out
})

var architecturesKey = regexp.MustCompile(`(?m)^architectures:.*\n(?:[ #-].*\n)*`)

// familyOf has the name of each architecture's family. It decodes one key of each file: a process
// needs few of them whole.
var familyOf = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for name, src := range models.Families() {
		var f family
		if err := yaml.Unmarshal([]byte(architecturesKey.FindString(src)), &f); err != nil {
			panic("bug: models/families/" + name + ".yaml: " + err.Error())
		}
		for _, arch := range f.Architectures {
			out[arch] = name
		}
	}
	return out
})

// findFamily returns the family of an architecture, or the family with that name.
func findFamily(arch string) (*family, bool) {
	if f, ok := familyNamed(arch); ok {
		return f, true
	}
	return familyNamed(familyOf()[arch])
}

// Architectures returns the architectures that have a family file, sorted.
func Architectures() []string { return slices.Sorted(maps.Keys(familyOf())) }

// chain returns the family's bases and itself, the most general first.
func (f *family) chain() []*family {
	base := f.Base
	if base == "" && f.name != "generic" {
		base = "generic"
	}
	if base == "" {
		return []*family{f}
	}
	b, ok := familyNamed(base)
	if !ok {
		panic(fmt.Sprintf("bug: models/families/%s.yaml: no base %q", f.name, base))
	}
	return append(b.chain(), f)
}

// modules returns the library with the modules of the family and of its bases.
func (f *family) modules() *expand.Library {
	if l, ok := familyLibraries.Load(f.name); ok {
		return l.(*expand.Library)
	}
	lib := library()
	for _, g := range f.chain() {
		text, own := models.FamilyModules()[g.name]
		if !own {
			continue
		}
		var err error
		if lib, err = lib.With(map[string]string{g.name + ".ifl": text}); err != nil {
			panic("bug: " + err.Error())
		}
	}
	first, _ := familyLibraries.LoadOrStore(f.name, lib)
	return first.(*expand.Library)
}

// familyLibraries are the libraries of families by name.
var familyLibraries sync.Map

// familyTensors are what a family says of stored tensors.
type familyTensors struct {
	ignore []string
	unread []unreadTensors
}

// apply applies the family's hyper-parameters to config and its modules to n, the
// most general file first.
func (f *family) apply(config map[string]any, n *Network) (t familyTensors, err error) {
	chain := f.chain()
	for _, g := range chain {
		g.rename(config)
	}
	stated := maps.Clone(config)
	arch, _ := config["model_type"].(string)
	own, _ := findFamily(arch)
	for _, g := range chain {
		if err := errors.Join(g.Only.check(g.path(), stated), g.Never.check(g.path(), stated)); err != nil {
			return t, err
		}
		if err := g.hyper(&g.Hyper, config); err != nil {
			return t, err
		}
		for i := range g.When {
			if w := &g.When[i]; w.holds(config, stated) {
				if err := errors.Join(w.refuse(), w.Only.check(g.path(), stated), w.Never.check(g.path(), stated)); err != nil {
					return t, err
				}
				if err := g.hyper(&w.Hyper, config); err != nil {
					return t, err
				}
			}
		}
	}
	for _, g := range chain {
		t.ignore = append(t.ignore, g.Ignore...)
		if err := g.network(&g.Network, config, n); err != nil {
			return t, err
		}
		for i := range g.When {
			if w := &g.When[i]; w.holds(config, stated) {
				t.ignore = append(t.ignore, w.Ignore...)
				if len(w.Unread) > 0 && own == f { // transformers has no class of other architectures
					t.unread = append(t.unread, unreadTensors{w.Unread, w.condition(stated)})
				}
				if err := g.network(&w.Network, config, n); err != nil {
					return t, err
				}
			}
		}
	}
	return t, nil
}

// mtp returns the hyper-parameters of the layer for multi-token prediction, and whether
// the family has one.
func (f *family) mtp() (layer map[string]any, known bool) {
	for _, g := range f.chain() {
		if g.MTP != nil {
			layer = g.MTP
		}
	}
	return layer, layer != nil
}

// familyFolder is the folder of the family files.
const familyFolder = "models/families/"

func (f *family) path() string { return familyFolder + f.name + ".yaml" }

func (f *family) hyper(n *yaml.Node, config map[string]any) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i].Value, n.Content[i+1]
		var x any
		var err error
		if isExpr(val) {
			x, err = evalExpr(val.Value, config)
		} else {
			err = val.Decode(&x)
		}
		if err != nil {
			return errAt(Pos{f.path(), val.Line, val.Column}, "hyper.%s: %v", key, err)
		}
		if x != nil {
			config[key] = x
		}
	}
	return nil
}

func (f *family) network(node *yaml.Node, config map[string]any, n *Network) error {
	if node.Kind == 0 {
		return nil
	}
	d := &decoder{file: f.path(), config: config}
	return d.network(node, n)
}

// holds reports whether the condition is true. Hyper-parameters that families
// add to config are compared too, but absent looks at stated only.
func (w *familyWhen) holds(config, stated map[string]any) bool {
	for _, key := range w.Absent {
		if _, present := parameter(stated, key); present {
			return false
		}
	}
	for _, key := range w.Present {
		if have, _ := parameter(stated, key); have == nil {
			return false
		}
	}
	for key, want := range w.If {
		if !sameValue(config[key], want) {
			return false
		}
	}
	return true
}

func sameValue(have, want any) bool {
	if have == nil {
		have = false
	}
	if want == nil {
		want = false
	}
	if a, ok := number(have); ok {
		b, ok := number(want)
		return ok && a == b
	}
	return reflect.DeepEqual(have, want)
}
