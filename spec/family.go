package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/models"
	"gopkg.in/yaml.v3"
)

// A family is one file of models/families: what the models of an architecture
// have in common, as expressions over config.json.
type family struct {
	name          string
	Doc           string       `yaml:"doc"`
	Architectures []string     `yaml:"architectures"` // config.json's model_type, GGUF's general.architecture
	Base          string       `yaml:"base"`          // read first; "generic" where none is given
	Hyper         yaml.Node    `yaml:"hyper"`
	Network       yaml.Node    `yaml:"network_structure"`
	Graph         string       `yaml:"graph"`
	Ignore        []string     `yaml:"ignore_tensors"`
	Only          only         `yaml:"only"`
	When          []familyWhen `yaml:"when"`
}

// A familyWhen adds to a family where config.json has the given values; an
// absent parameter equals null and false. Where the difference counts, absent
// names parameters of which config.json has none, not even as null.
type familyWhen struct {
	If      map[string]any `yaml:"if"`
	Absent  []string       `yaml:"absent"`
	Only    only           `yaml:"only"`
	Hyper   yaml.Node      `yaml:"hyper"`
	Network yaml.Node      `yaml:"network_structure"`
}

// only lists parameters of config.json that change what transformers computes,
// with the values that the family follows; null and absence are always fine. A
// model with another value is refused: its numbers would be wrong.
type only map[string][]any

// families reads the embedded family files once.
var families = sync.OnceValue(func() map[string]*family {
	out := map[string]*family{}
	for name, src := range models.Families() {
		f := &family{name: name}
		dec := yaml.NewDecoder(strings.NewReader(string(src)))
		dec.KnownFields(true)
		if err := dec.Decode(f); err != nil {
			panic("bug: models/families/" + name + ".yaml: " + err.Error())
		}
		out[name] = f
	}
	return out
})

// findFamily finds the family of an architecture, or of its own name.
func findFamily(arch string) (*family, bool) {
	fams := families()
	if f, ok := fams[arch]; ok {
		return f, true
	}
	for _, f := range fams {
		if slices.Contains(f.Architectures, arch) {
			return f, true
		}
	}
	return nil, false
}

// Architectures lists the architectures for which there is a family file.
func Architectures() []string {
	var out []string
	for _, f := range families() {
		out = append(out, f.Architectures...)
	}
	sort.Strings(out)
	return out
}

// chain lists the family's bases and itself, the most general first.
func (f *family) chain() []*family {
	base := f.Base
	if base == "" && f.name != "generic" {
		base = "generic"
	}
	if base == "" {
		return []*family{f}
	}
	b, ok := families()[base]
	if !ok {
		panic(fmt.Sprintf("bug: models/families/%s.yaml: no base %q", f.name, base))
	}
	return append(b.chain(), f)
}

// apply sets what the family says of hyper-parameters (into config) and of
// modules (into n), the most general file first.
func (f *family) apply(config map[string]any, n *Network, ignore *[]string) error {
	chain, stated := f.chain(), maps.Clone(config)
	for _, g := range chain {
		if err := g.Only.check(g.path(), stated); err != nil {
			return err
		}
		if err := g.hyper(&g.Hyper, config); err != nil {
			return err
		}
		for i := range g.When {
			if w := &g.When[i]; w.holds(config, stated) {
				if err := w.Only.check(g.path(), stated); err != nil {
					return err
				}
				if err := g.hyper(&w.Hyper, config); err != nil {
					return err
				}
			}
		}
	}
	for _, g := range chain {
		*ignore = append(*ignore, g.Ignore...)
		if err := g.network(&g.Network, config, n); err != nil {
			return err
		}
		for i := range g.When {
			if w := &g.When[i]; w.holds(config, stated) {
				if err := g.network(&w.Network, config, n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// familyFolder is where the family files are.
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
	return d.layer(node, n)
}

// layer decodes one more layer of network_structure over n: tensor names add
// up, the later layer's first; other keys replace.
func (d *decoder) layer(node *yaml.Node, n *Network) error {
	below := n.TensorNameMapping
	n.TensorNameMapping = nil
	if err := d.structure(node, reflect.ValueOf(n).Elem(), "network_structure"); err != nil {
		return err
	}
	for i := range n.TensorNameMapping {
		n.TensorNameMapping[i].Prefix = n.TensorNamePrefix
	}
	n.TensorNameMapping = append(n.TensorNameMapping, below...)
	return nil
}

// holds reports whether the condition does. Hyper-parameters that families add to
// config count, but not as stated.
func (w *familyWhen) holds(config, stated map[string]any) bool {
	for _, key := range w.Absent {
		if _, present := stated[key]; present {
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

// check refuses the first parameter with a value that the family does not follow.
func (o only) check(family string, config map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		have := config[key]
		if have == nil || slices.ContainsFunc(o[key], func(x any) bool { return sameValue(have, x) }) {
			continue
		}
		want := "none"
		if len(o[key]) > 0 {
			want = plainJSON(o[key])
		}
		return fmt.Errorf("config.json: %s: have %s, which changes what the model computes in a way that %s does not follow; it follows %s", key, plainJSON(have), family, want)
	}
	return nil
}

func plainJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
