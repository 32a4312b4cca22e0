// Package settings resolves how tokens are picked: from what a caller asks for, the
// model's own configuration, and defaults. One table lists the fields of a model's
// configuration, and which of them iflowc honors.
package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A Config is the configuration of a model: generation_config.json, keys of a GGUF file,
// and the sampling method of the model spec.
type Config struct {
	EOS      []int32         // eos_token_id
	Start    []int32         // decoder_start_token_id
	Stop     []string        // stop_strings
	Stopping decode.Stopping // early_stopping

	sample   *bool // do_sample; nil: it is not set
	strategy string
	values   map[string]float64 // by the names of settings
	rules    decode.Rules       // those that values do not have

	reading string            // the field that is being read
	file    string            // where fields are from that are no GGUF keys
	from    map[string]string // name of a setting → field that set it
	refused []refusal
	unused  []string // a line for each field that has no effect
	vocab   int
	bos     int // -1: none
}

// A refusal is a field that cannot be honored.
type refusal struct {
	*field
	value any
}

// Read returns the configuration of a model. ignored are names of fields that are left
// out. An error names the field.
func Read(m *manifest.Manifest, ignored []string) (*Config, error) {
	c := &Config{
		strategy: m.Engine.Strategy, values: map[string]float64{}, file: m.GenerationFile, from: map[string]string{}, vocab: m.Vocab, bos: m.BOS,
	}
	for _, name := range ignored {
		if _, ok := m.Generation[name]; !ok {
			return nil, fmt.Errorf("--ignore-setting %s: the model's configuration has no such field", name)
		}
	}
	for i := range fields {
		f := &fields[i]
		v := m.Generation[f.name]
		if v == nil || slices.Contains(ignored, f.name) {
			continue
		}
		switch {
		case f.read != nil:
			c.reading = f.name
			if err := f.read(c, v); err != nil {
				return nil, fmt.Errorf("%s: %w; --ignore-setting %s runs without it", c.where(f.name), err, f.name)
			}
		case f.refused != "" && !f.isNeutral(v):
			c.refused = append(c.refused, refusal{f, v})
		}
	}
	for name := range m.Generation {
		if lookUp(name) == nil {
			c.unused = append(c.unused, fmt.Sprintf("%s (%s) is unknown and has no effect", name, c.where(name)))
		}
	}
	slices.Sort(c.unused)
	return c, nil
}

// where returns the name of a field with that of its file.
func (c *Config) where(name string) string {
	if strings.HasPrefix(name, gguf) {
		return "GGUF " + name
	}
	if c.file == "" {
		return "generation_config.json " + name
	}
	return c.file + " " + name
}

// isNeutral reports whether a value of a refused field changes nothing.
func (f *field) isNeutral(v any) bool {
	switch list := v.(type) {
	case []any:
		return len(list) == 0
	case map[string]any:
		return len(list) == 0 && f.name != "watermarking_config"
	}
	return slices.Contains(f.neutral, v)
}

// Refuse returns an error for a field whose value cannot be honored.
func (c *Config) Refuse(name string, value any, why string) error {
	return fmt.Errorf("%s is %v: %s; --ignore-setting %s runs without it", c.where(name), value, why, name)
}

// Refused returns an error for the first field that would change a text and cannot be
// honored. draws says whether tokens are drawn at random.
func (c *Config) Refused(draws bool) error {
	for _, r := range c.refused {
		if draws || !r.draws {
			return c.Refuse(r.name, r.value, r.field.refused)
		}
	}
	return nil
}

// NoBeams returns an error if the configuration asks for a beam search.
func (c *Config) NoBeams(command string) error {
	if n := c.Whole("num_beams", 1); n > 1 {
		return c.Refuse("num_beams", n, command+" has no beam search")
	}
	return nil
}

// Number returns a setting of the configuration.
func (c *Config) Number(name string, otherwise float64) float64 {
	if v, ok := c.values[name]; ok {
		return v
	}
	return otherwise
}

// Whole returns a setting that is a whole number.
func (c *Config) Whole(name string, otherwise int) int {
	return int(c.Number(name, float64(otherwise)))
}

// Samples reports whether the configuration says how to draw tokens at random: by
// do_sample, or without it by any setting of drawing.
func (c *Config) Samples() bool {
	if c.sample != nil {
		return *c.sample
	}
	if c.strategy != "" || c.values["mirostat"] != 0 {
		return true
	}
	return slices.ContainsFunc(numbers, func(s number) bool {
		_, ok := c.values[s.name]
		return ok && s.draws
	})
}

// DoSample reports whether do_sample is true.
func (c *Config) DoSample() bool { return c.sample != nil && *c.sample }

// Limit returns the maximum number of tokens after a prompt: what the caller asks for, or
// what the configuration says, or a default.
func (c *Config) Limit(asked *int, prompt, otherwise int) int {
	length := c.Whole("max_length", 0)
	switch n := c.Whole("max_new_tokens", 0); {
	case asked != nil:
		return *asked
	case n > 0:
		return n
	case length > prompt: // a longer prompt has left it behind
		return length - prompt
	}
	return otherwise
}

// Notices returns a line for each field that would change a text and cannot be honored,
// for the user of the compiler.
func Notices(m *manifest.Manifest) (lines []string) {
	c, err := Read(m, nil)
	if err != nil {
		return []string{err.Error()}
	}
	for _, r := range c.refused {
		lines = append(lines, c.Refuse(r.name, r.value, r.field.refused).Error())
	}
	return lines
}

// Older reports whether models without generation_config.json have a field in
// config.json.
func Older() (names []string) {
	for _, f := range fields {
		if f.older {
			names = append(names, f.name)
		}
	}
	return names
}

// FromGGUF returns the sampling settings among the metadata of a GGUF file.
func FromGGUF(meta map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range meta {
		if strings.HasPrefix(key, gguf) {
			out[key] = jsonValue(v)
		}
	}
	return out
}
