package spec

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A nameRule maps a stored tensor name to a standard name.
type nameRule struct {
	stored   *Pattern
	standard *Pattern
	whole    bool // the name has the prefix as its entry states it
	pos      Pos  // of the model spec's entry; zero for the built-in maps
}

//go:embed names.yaml
var namesYAML string

// A nameList is a list of names.yaml.
type nameList struct {
	format string // gguf; original: the files that Meta published; "": transformers
	rules  []nameRule
}

// defaultNames returns the lists of names.yaml.
var defaultNames = sync.OnceValue(func() []nameList {
	type mapping struct {
		Name, Format, Prefix string
		Mapping              yaml.Node
	}
	var lists []nameList
	for _, m := range data[[]mapping]("names.yaml", namesYAML) {
		var entries []Entry
		for i := 0; i+1 < len(m.Mapping.Content); i += 2 {
			entries = append(entries, Entry{Key: m.Mapping.Content[i].Value, Val: m.Mapping.Content[i+1].Value, Prefix: m.Prefix})
		}
		rules, err := rulesOfAll(entries)
		if err != nil {
			panic("bug: names.yaml: " + err.Error())
		}
		lists = append(lists, nameList{m.Format, rules})
	}
	return lists
})

// ggufNames returns the names that GGUF files have for tensors.
var ggufNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, l := range defaultNames() {
		for _, r := range l.rules {
			names[r.stored.String()] = names[r.stored.String()] || l.format == "gguf"
		}
	}
	return names
})

// defaultRules returns the built-in rules of names.yaml.
var defaultRules = sync.OnceValue(func() []nameRule {
	var rules []nameRule
	for _, l := range defaultNames() {
		rules = append(rules, l.rules...)
	}
	return rules
})

// rulesOf returns the rules of an entry: with its prefix, without it, and with
// "model." added or removed. transformers saves a model with or without the
// prefix of its head.
func rulesOf(e Entry) ([]nameRule, error) {
	var out []nameRule
	names := []string{e.Prefix + e.Key, e.Key, "model." + e.Prefix + e.Key, strings.TrimPrefix(e.Prefix, "model.") + e.Key}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		p, err := ParsePattern(name)
		if err != nil {
			return nil, errAt(e.Pos, "tensor name %v", err)
		}
		std, err := ParsePattern(numbered(standardName(e.Val), name))
		if err != nil {
			return nil, errAt(e.Pos, "standard name %v", err)
		}
		out = append(out, nameRule{p, std, i == 0, e.Pos})
	}
	return out, nil
}

// numbered returns a standard name with the numbers that the stored name has. A layer's tensor that is
// stored once for all has none; layers in groups have that of the group, and one in it.
func numbered(std, stored string) string {
	switch i, j := strings.Contains(stored, "{i}"), strings.Contains(stored, "{j}"); {
	case !i:
		return strings.Replace(std, "{i}.", "", 1)
	case j && !strings.Contains(std, "{j}"):
		return strings.Replace(std, "{i}.", "{i}.{j}.", 1)
	}
	return std
}

// shared returns the stored name of a tensor that several layers read.
func (r *nameRule) shared(i, j int) string {
	name := r.stored.String()
	if i >= 0 {
		name = strings.ReplaceAll(name, "{i}", strconv.Itoa(i))
	}
	if strings.Contains(r.standard.String(), "{i}.{j}.") {
		name = strings.ReplaceAll(name, "{j}", strconv.Itoa(j))
	}
	return name
}

// rulesOfAll returns the rules of all entries.
func rulesOfAll(entries []Entry) ([]nameRule, error) {
	var out []nameRule
	for _, e := range entries {
		r, err := rulesOf(e)
		if err != nil {
			return nil, err
		}
		out = append(out, r...)
	}
	return out, nil
}

// standardName returns the canonical name of a standard name that has aliases.
func standardName(s string) string {
	switch s {
	case "token_embeddings.weight", "shared.weight":
		return "dec.token_embeddings.weight"
	case "enc.output.weight", "enc.output.bias", "dec.output.weight", "dec.output.bias":
		return s[len("enc."):]
	}
	return s
}

// standardNames returns the standard names of tensors that the model's modules may ask for.
func (s *Spec) standardNames() []string {
	names, err := s.Network.modules().Tensors(rootModule)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return names
}

// checkStandard returns an error for an entry whose value is no standard name.
func (s *Spec) checkStandard() error {
	known := s.standardNames()
	for _, e := range s.Network.TensorNameMapping {
		name := standardName(e.Val)
		form := strings.Replace(name, secondPart, "", 1)
		if slices.Contains(known, form) || slices.Contains(known, strings.Replace(form, "dec.", "enc.", 1)) {
			continue
		}
		hint := ""
		if n := spelling.Nearest(form, known); n != "" {
			hint = "; did you mean " + n + "?"
		}
		return errAt(e.Pos, "tensor_name_mapping: %q is not a standard tensor name%s", e.Val, hint)
	}
	return nil
}

// checkPatterns checks the tensor names of the model spec before files are opened.
func (s *Spec) checkPatterns() error {
	for _, e := range s.Network.TensorNameMapping {
		if _, err := rulesOf(e); err != nil {
			return err
		}
	}
	for _, e := range s.Types {
		if _, err := path.Match(e.Key, ""); err != nil {
			return errAt(e.Pos, "types: %q: %v", e.Key, err)
		}
		if _, err := ParseType(e.Val); err != nil {
			return errAt(e.Pos, "types: %v", err)
		}
	}
	for _, g := range s.Ignore {
		if _, err := path.Match(g, ""); err != nil {
			return errAt(s.Pos("ignore_tensors"), "ignore_tensors: %q: %v", g, err)
		}
	}
	return nil
}

// rules returns the model spec's rules, then the built-in rules.
func (s *Spec) rules() ([]nameRule, error) {
	out, err := rulesOfAll(s.Network.TensorNameMapping)
	if err != nil {
		return nil, err
	}
	out = append(out, defaultRules()...)
	if s.Config["text_only"] != true {
		return out, nil
	}
	return nestedRules(out)
}

// nestedRules returns rules for the names of a language model inside a multimodal
// model: language_model.model.layers…, or model.language_model.layers…,
// or thinker.model.layers….
func nestedRules(rules []nameRule) ([]nameRule, error) {
	out := make([]nameRule, 0, 4*len(rules))
	for _, r := range rules {
		for _, prefix := range []string{"language_model.", "model.language_model.", "thinker."} {
			p, err := ParsePattern(prefix + r.stored.String())
			if err != nil {
				return nil, err
			}
			out = append(out, nameRule{p, r.standard, r.whole, r.pos})
		}
	}
	return append(out, rules...), nil
}

// otherModalities are patterns of the tensors of a multimodal model that text
// generation does not use.
var otherModalities = []string{
	"vision_tower.*", "model.vision_tower.*", "multi_modal_projector.*", "model.multi_modal_projector.*", "vision_model.*", "model.vision_model.*",
	"visual.*", "model.visual.*", "audio_tower.*", "model.audio_tower.*",
	"embed_vision.*", "model.embed_vision.*", "embed_audio.*", "model.embed_audio.*", "vision_embedder.*", "model.vision_embedder.*",
}

// ignored reports whether the tensor is not part of the computation.
func (s *Spec) ignored(name string) bool {
	ignore := s.Ignore
	if s.Config["text_only"] == true {
		ignore = append(slices.Clone(ignore), otherModalities...)
	}
	return matchesAny(ignore, name)
}

// matchesAny reports whether a tensor's name matches one of the patterns.
func matchesAny(patterns []string, name string) bool {
	for _, g := range patterns {
		// Fast path: most names already differ in their last part, and models have up to 50,000 names.
		if i := strings.LastIndexByte(g, '*'); i >= 0 && !strings.ContainsAny(g[i:], `?[\`) && !strings.HasSuffix(name, g[i+1:]) {
			continue
		}
		if ok, err := path.Match(g, name); err == nil && ok {
			return true
		}
	}
	return false
}
