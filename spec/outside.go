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

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

//go:embed outside.yaml
var outsideYAML string

// An unsupported entry is a group of unsupported architectures and the feature that they need.
type unsupported struct {
	Architectures []string
	Missing       string
}

var unsupportedArchitectures = sync.OnceValue(func() []unsupported {
	return data[[]unsupported]("outside.yaml", outsideYAML)
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
	*Spec            // as if the model were of the family
	unread  []string // kinds of tensors that it does not read
	derived int      // families that build on it
	lacks   string   // why it does not fit; "": it does
}

// triedTensors is the number of tensors, counted for each family, with which families are tried:
// as many take about three seconds.
const triedTensors = 500_000

// nearestFamilies describes the three families that fit the model's tensors best; none if there
// are no weight files.
func (s *Spec) nearestFamilies() []string {
	set, err := s.OpenWeights()
	if err != nil {
		return nil
	}
	defer set.Close()
	return s.nearestTo(HeadersOf(set))
}

func (s *Spec) nearestTo(h Headers) (out []string) {
	var fits []*familyFit
	for _, name := range slices.Sorted(maps.Keys(families())) {
		if f := s.fit(name, oneOfEachKind{h}); f != nil {
			fits = append(fits, f)
		}
	}
	// Of two that read the same, the one that others build on has less of its own.
	slices.SortStableFunc(fits, func(a, b *familyFit) int {
		return cmp.Or(cmp.Compare(len(a.unread), len(b.unread)), cmp.Compare(b.derived, a.derived))
	})
	tried, n := 0, len(h.Names())
	for found := 0; tried < len(fits) && found < 3 && tried*n < triedTensors; tried++ {
		if fits[tried].try(h); fits[tried].lacks == "" {
			found++
		}
	}
	fits = fits[:tried]
	slices.SortStableFunc(fits, func(a, b *familyFit) int {
		lack := func(f *familyFit) int { return len(f.unread) + min(len(f.lacks), 1) }
		return cmp.Compare(lack(a), lack(b))
	})
	for _, f := range fits[:min(3, len(fits))] {
		out = append(out, fmt.Sprintf("%s (%s)", f.Family, cmp.Or(f.lacks, "reads all of its tensors; compare the computation")))
	}
	return out
}

// oneOfEachKind leaves out tensors whose names differ from another only in numbers: those of
// other layers and experts.
type oneOfEachKind struct{ Headers }

func (h oneOfEachKind) Names() (names []string) {
	seen := map[string]bool{}
	for _, n := range h.Headers.Names() {
		if kind := tensorIndex.ReplaceAllString(n, ".{i}."); !seen[kind] {
			seen[kind] = true
			names = append(names, n)
		}
	}
	return names
}

// fit compares a family with a model's configuration and names of tensors. It returns nil if
// the family is of another kind of models, cannot be built with the configuration, or reads
// nothing.
func (s *Spec) fit(name string, h Headers) *familyFit {
	f, _ := familyNamed(name)
	fit := &familyFit{Spec: &Spec{File: s.File, Name: s.Name, ModelDir: s.ModelDir, Family: name, Config: maps.Clone(s.configFile), ModelFileFormat: s.ModelFileFormat, set: positions{}}}
	if name == "generic" || f.Graph != "" || fit.derive(nil) != nil {
		return nil
	}
	decodes := strings.Contains(fmt.Sprint(s.configFile["architectures"]), "ForCausalLM")
	if decodes != strings.HasPrefix(fit.Network.Topology(), "decoder_only") {
		return nil
	}
	for _, other := range families() {
		if other != f && slices.Contains(other.chain(), f) {
			fit.derived++
		}
	}
	m := newModel(fit.Spec)
	if m.mapNames(h) != nil || len(m.tensors) == 0 {
		return nil
	}
	for _, n := range m.unmatched {
		fit.unread = append(fit.unread, tensorIndex.ReplaceAllString(n, ".{i}."))
	}
	return fit
}

// try sets what the family lacks for all tensors of the model.
func (f *familyFit) try(h Headers) {
	if n := len(f.unread); n > 0 {
		f.lacks = fmt.Sprintf("does not read %s", strings.Join(f.unread[:min(3, n)], ", "))
		if n > 3 {
			f.lacks += fmt.Sprintf(" and %d more", n-3)
		}
		return
	}
	m, err := Resolve(f.Spec, h)
	if err == nil {
		_, err = Lower(m)
	}
	if err != nil {
		f.lacks, _, _ = strings.Cut(message(err), "\n")
	}
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
