package spec

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/models"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
	"gopkg.in/yaml.v3"
)

//go:embed outside.yaml
var outsideYAML []byte

// An unsupported entry is a group of unsupported architectures and the feature that they need.
type unsupported struct {
	Architectures []string
	Missing       string
}

var unsupportedArchitectures = sync.OnceValue(func() []unsupported {
	var out []unsupported
	if err := yaml.Unmarshal(outsideYAML, &out); err != nil {
		panic("bug: outside.yaml: " + err.Error())
	}
	return out
})

// unknownArchitecture returns the error for an architecture without a family. It
// names the missing feature, if known.
func (s *Spec) unknownArchitecture(arch string) error {
	for _, o := range unsupportedArchitectures() {
		if !slices.Contains(o.Architectures, arch) {
			continue
		}
		return errAt(Pos{File: s.File}, "architecture %q needs %s; network_structure does not support that (its layers are full, sliding-window or latent attention, linear attention, state spaces or short convolutions with an FFN or experts), nor do the ops of a graph: block", arch, o.Missing)
	}
	nearest := ""
	if near := s.nearestFamilies(); len(near) > 0 {
		nearest = "; nearest families: " + strings.Join(near, "; ")
	}
	return errAt(Pos{File: s.File}, "unknown architecture %q%s%s; a family is text over the modules that iflowc has: in a model spec, name one (family: …) and write what differs under network_structure (iflowc schema lists the keys), or write the model as a graph: block", arch, suggestOnly(arch), nearest)
}

// A familyFit says how well a family fits a model's files.
type familyFit struct {
	name   string
	lacks  string // why it does not fit; "": it does
	unread int    // kinds of tensors that it does not read
}

// nearestFamilies describes the three families that read most of the model's tensors; none if there are no weight files.
func (s *Spec) nearestFamilies() []string {
	set, err := s.OpenWeights()
	if err != nil {
		return nil
	}
	defer set.Close()
	h := HeadersOf(set)
	var fits []familyFit
	for _, name := range s.familiesByKeys() {
		if fit, ok := s.fit(name, h); ok {
			fits = append(fits, fit)
		}
	}
	slices.SortStableFunc(fits, func(a, b familyFit) int {
		lack := func(f familyFit) int { return f.unread + min(len(f.lacks), 1) }
		return cmp.Compare(lack(a), lack(b))
	})
	var out []string
	for _, f := range fits[:min(3, len(fits))] {
		out = append(out, fmt.Sprintf("%s (%s)", f.name, cmp.Or(f.lacks, "reads all of its tensors; compare the computation")))
	}
	return out
}

// triedFamilies is the number of families that are compared with an unknown model's tensors.
const triedFamilies = 12

// familiesByKeys returns the families of decoders, or else of other models, that read most keys of
// the configuration.
func (s *Spec) familiesByKeys() []string {
	keys, sources := map[string]int{}, models.Families()
	decodes := strings.Contains(fmt.Sprint(s.configFile["architectures"]), "ForCausalLM")
	for name, f := range families() {
		if name == "generic" || f.Graph != "" {
			continue
		}
		seen, text := map[string]bool{}, ""
		for _, base := range f.chain() {
			text += string(sources[base.name])
		}
		if decodes != strings.Contains(text, "type: decoder_only") {
			continue
		}
		for _, ref := range parameterName.FindAllStringSubmatch(text, -1) {
			if _, ok := s.configFile[ref[1]]; ok && !seen[ref[1]] {
				seen[ref[1]] = true
				keys[name]++
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return cmp.Or(cmp.Compare(keys[b], keys[a]), strings.Compare(a, b)) })
	return names[:min(triedFamilies, len(names))]
}

// fit tries a family; ok is false if it reads nothing of the model.
func (s *Spec) fit(name string, h Headers) (fit familyFit, ok bool) {
	t := &Spec{File: s.File, Name: s.Name, ModelDir: s.ModelDir, Family: name, Config: maps.Clone(s.configFile), ModelFileFormat: s.ModelFileFormat, set: positions{}}
	fit.name = name
	if err := t.derive(nil); err != nil {
		fit.lacks = message(err)
		return fit, true
	}
	m := &Model{Spec: t, Net: &t.Network, tensors: map[string]Tensor{}}
	unread, err := m.mapNames(h)
	if err != nil || len(m.tensors) == 0 {
		return fit, false
	}
	kinds := map[string]bool{}
	for _, n := range unread {
		kinds[tensorIndex.ReplaceAllString(n, ".{i}.")] = true
	}
	names := slices.Sorted(maps.Keys(kinds))
	fit.unread = len(names)
	if m, err = Resolve(t, h); err == nil {
		_, err = m.LowerText()
	}
	if err != nil {
		fit.lacks = message(err)
	}
	if len(names) > 0 {
		fit.lacks = fmt.Sprintf("does not read %s", strings.Join(names[:min(3, len(names))], ", "))
		if n := len(names) - 3; n > 0 {
			fit.lacks += fmt.Sprintf(" and %d more", n)
		}
	}
	return fit, true
}

// message returns an error's text without its place.
func message(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.What
	}
	return err.Error()
}

func suggestOnly(arch string) string {
	if n := spelling.Nearest(arch, Architectures()); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}
