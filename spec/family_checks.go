package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// only lists parameters of config.json that change the computation in
// transformers, with the values that the family supports. Null and absent
// parameters are always accepted. Any other value is an error, because the
// results would be wrong. A key is a path, such as rope_scaling.factor.
type only map[string][]any

// check returns an error for the first parameter with an unsupported value.
func (o only) check(family string, config map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		have, _ := parameter(config, key)
		values, err := o.values(key, config)
		if err != nil {
			return err
		}
		if have == nil || slices.ContainsFunc(values, func(x any) bool { return sameValue(have, x) }) {
			continue
		}
		want := "none"
		if len(values) > 0 {
			want = plainJSON(values)
		}
		return fmt.Errorf("config.json: %s: have %s, which changes the computation and which %s does not support; it supports %s", key, plainJSON(have), family, want)
	}
	return nil
}

// values returns the values of a parameter; that of an expression, such as another parameter.
func (o only) values(key string, config map[string]any) ([]any, error) {
	out := slices.Clone(o[key])
	for i, v := range out {
		if text, ok := v.(string); ok && exprStart.MatchString(text) {
			x, err := evalExpr(text, config)
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
	}
	return out, nil
}

// never lists values of parameters that transformers computes something else with than
// the family does. A list has none of them as an entry.
type never map[string][]any

func (n never) check(family string, config map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(n)) {
		have, stated := parameter(config, key)
		entries, _ := have.([]any)
		if stated && slices.ContainsFunc(append(entries, have), func(v any) bool { return n.has(key, v) }) {
			return fmt.Errorf("config.json: %s: have %s, with which transformers computes something else than %s; leave it out for the default", key, plainJSON(have), family)
		}
	}
	return nil
}

func (n never) has(key string, value any) bool {
	return slices.ContainsFunc(n[key], func(x any) bool { return (x == nil) == (value == nil) && sameValue(value, x) })
}

// parameter returns the value at a path of config.json.
func parameter(config map[string]any, key string) (value any, stated bool) {
	for {
		outer, inner, nested := strings.Cut(key, ".")
		if !nested {
			value, stated = config[key]
			return value, stated
		}
		config, _ = config[outer].(map[string]any)
		key = inner
	}
}

func (w *familyWhen) refuse() error {
	if w.Refuse == "" {
		return nil
	}
	return errors.New("config.json: " + w.Refuse)
}

// rename gives the parameters that config.json has under other names their own names.
func (f *family) rename(config map[string]any) {
	if config["model_file_format"] != nil {
		return // whose keys we name
	}
	for _, alias := range slices.Sorted(maps.Keys(f.Aliases)) {
		if v := config[alias]; v != nil {
			config[f.Aliases[alias]] = v
			delete(config, alias)
		}
	}
}

// unreadTensors are stored tensors that transformers does not read because of a parameter,
// such as a bias with attention_bias false.
type unreadTensors struct {
	patterns []string
	why      string
}

// checkUnread returns an error for such a tensor.
func (s *Spec) checkUnread(name string) error {
	for _, u := range s.unread {
		if matchesAny(u.patterns, name) && !s.ignored(name) {
			return errAt(Pos{File: s.File}, "%s, so transformers does not read the stored tensor %q; correct the key, or list the tensor in ignore_tensors of a model spec", u.why, name)
		}
	}
	return nil
}

// condition says which parameters a condition is about, and their values.
func (w *familyWhen) condition(stated map[string]any) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(w.If)) {
		if key == "model_file_format" {
			continue // none
		}
		value := "absent"
		if have, ok := stated[key]; ok {
			value = plainJSON(have)
		}
		out = append(out, key+" is "+value)
	}
	return "config.json: " + strings.Join(out, ", ")
}

func plainJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
