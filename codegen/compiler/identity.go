package compiler

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/runtime/sampling/settings"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/spec/tokenizerfile"
)

// maxTokenizerFile is the maximum size of a tokenizer file; the largest published one has 35 MB.
const maxTokenizerFile = 256 << 20

// tokenizer reads the model's tokenizer and returns it with its serialized
// form. A model without one computes on ids.
func (m *Model) tokenizer() (*tokenizer.Tokenizer, []byte, error) {
	t, err := m.loadTokenizer()
	if err != nil {
		return nil, nil, InputError{fmt.Errorf("tokenizer of %s: %w", m.Spec.ModelDir, err)}
	}
	if t == nil {
		m.opt.notice("%s has no tokenizer%s: the binary takes --ids, not text", m.Spec.ModelDir, m.unreadTokenizer())
		return nil, []byte{}, nil
	}
	data, err := t.Marshal()
	return t, data, err
}

// unreadTokenizer names files of the model's folder that look like a tokenizer's but are not
// read; "": none.
func (m *Model) unreadTokenizer() string {
	var unread []string
	entries, _ := os.ReadDir(m.Spec.ModelDir) // a folder that cannot be listed has none
	for _, e := range entries {
		n := strings.ToLower(e.Name())
		named := strings.Contains(n, "tokenizer") || strings.Contains(n, "vocab") || slices.Contains([]string{".tiktoken", ".spm", ".bpe"}, filepath.Ext(n))
		if named && !e.IsDir() && !slices.Contains(tokenizerfile.Names(), n) && filepath.Ext(n) != ".py" {
			unread = append(unread, e.Name())
		}
	}
	if len(unread) == 0 {
		return ""
	}
	return " that iflowc reads; it does not read " + strings.Join(unread[:min(3, len(unread))], ", ")
}

func (m *Model) loadTokenizer() (*tokenizer.Tokenizer, error) {
	names := slices.Concat(m.Spec.TokenizerFiles, tokenizerfile.Names())
	if m.Spec.TokenizerFile != "" {
		names = append([]string{m.Spec.TokenizerFile}, names...)
	}
	files := tokenizerfile.Files{}
	found := false
	for _, n := range names {
		if files[n] != nil {
			continue
		}
		data, err := regular.ReadIn(m.Spec.ModelDir, n, maxTokenizerFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		files[n] = data
		found = found || isVocabulary(n)
	}
	if n := m.Spec.TokenizerFile; n != "" && files[n] == nil {
		return nil, fmt.Errorf("%s does not exist", n)
	}
	switch {
	case m.Spec.TokenizerFile == "" && m.set.Format() == "gguf" && m.set.Meta()["tokenizer.ggml.tokens"] != nil:
		return tokenizerfile.FromGGUF(m.set.Meta())
	case files["tokenizer.bin"] != nil:
		return tokenizerfile.FromLlama2C(files["tokenizer.bin"], m.Hyper.Vocab)
	case found:
		return tokenizerfile.Load(files)
	}
	return nil, nil
}

// isVocabulary reports whether a file alone can make a tokenizer.
func isVocabulary(name string) bool {
	switch name {
	case "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "config.json", "merges.txt":
		return false
	}
	return true
}

// weightFacts sets what users are told of the weights.
func weightFacts(man *manifest.Manifest) {
	man.Types = map[string]string{}
	for _, w := range man.Weights {
		man.Types[w.Name] = w.DType.String()
		if w.Name == "type_embed" {
			man.TokenTypes = w.Rows
		}
	}
}

// identify sets the manifest's description of the model.
func (m *Model) identify(man *manifest.Manifest, tok *tokenizer.Tokenizer) {
	man.Format = manifest.Format
	man.Compiler = Version()
	man.Name = m.Spec.Name
	man.Network, _, _ = strings.Cut(m.Net.Topology(), ".") // the runtime does not depend on how experts are routed
	man.Vocab = m.Hyper.Vocab
	man.Context = m.Context
	man.Inputs = m.merged
	man.BOS, man.Pad = -1, -1
	m.generation(man)
	weightFacts(man)
	set := func(to *int, keys ...string) {
		for _, k := range keys {
			if n := ids(man.Generation[k]); len(n) > 0 && *to < 0 {
				*to = int(n[0])
			}
			if n := ids(m.Spec.Config[k]); len(n) > 0 && *to < 0 {
				*to = int(n[0])
			}
		}
	}
	set(&man.BOS, "bos_token_id")
	set(&man.Pad, "pad_token_id")
	m.describe(man)
	m.medusa(man)
	man.EOS = ids(man.Generation["eos_token_id"])
	if len(man.EOS) == 0 {
		man.EOS = ids(m.Spec.Config["eos_token_id"])
	}
	if tok == nil {
		return
	}
	if id, ok := tok.BOS(); ok && man.BOS < 0 {
		man.BOS = int(id)
	}
	if id, ok := tok.EOS(); ok && !slices.Contains(man.EOS, id) {
		man.EOS = append(man.EOS, id)
	}
	for _, id := range tok.StopIDs() {
		if !slices.Contains(man.EOS, id) {
			man.EOS = append(man.EOS, id)
		}
	}
	m.templates(man, tok)
	m.engine(man)
	first := tok.Encode("a", true)
	if id, last, ok := tok.DecoderStart(); ok && man.Generation["decoder_start_token_id"] == nil && man.Network == "encoder_decoder" {
		man.Language = &manifest.Language{Start: id, Last: last}
	}
	man.AddBOS = len(first) > 0 && man.BOS >= 0 && int(first[0]) == man.BOS
}

// generation sets the fields of generation_config.json, or of config.json in a folder
// without it, and those of a GGUF file.
func (m *Model) generation(man *manifest.Manifest) {
	man.GenerationFile = cmp.Or(m.Spec.GenerationConfig, "generation_config.json")
	man.Generation = map[string]any{}
	data, err := regular.ReadIn(m.Spec.ModelDir, man.GenerationFile, maxSideFile)
	if err == nil {
		err = json.Unmarshal(data, &man.Generation)
	}
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
	case m.Spec.GenerationConfig == "" && errors.Is(err, fs.ErrNotExist): // older models have these settings in config.json
		man.GenerationFile = "config.json"
		for _, k := range settings.Older() {
			if v, ok := m.Spec.Config[k]; ok && v != nil {
				man.Generation[k] = v
			}
		}
	case errors.As(err, &kind):
		m.opt.notice("%s is a JSON %s, expected an object; its settings are not used", man.GenerationFile, kind.Value)
	default:
		m.opt.notice("%s: %v; its settings are not used", man.GenerationFile, err)
		clear(man.Generation)
	}
	if man.Generation == nil { // null
		man.Generation = map[string]any{}
	}
	if m.set.Format() == "gguf" {
		maps.Copy(man.Generation, settings.FromGGUF(m.set.Meta()))
	}
	if man.Network != "encoder_only" {
		for _, line := range settings.Notices(man) {
			m.opt.notice("%s", line)
		}
	}
}

// ids reads a token id, or a list of them.
func ids(v any) []int32 {
	switch v := v.(type) {
	case float64:
		return []int32{int32(v)}
	case int:
		return []int32{int32(v)}
	case uint32:
		return []int32{int32(v)}
	case int32:
		return []int32{v}
	case []any:
		var out []int32
		for _, x := range v {
			out = append(out, ids(x)...)
		}
		return out
	}
	return nil
}

// medusa sets the runtime's description of draft heads or of a draft layer.
func (m *Model) medusa(man *manifest.Manifest) {
	d, s := m.Medusa, &m.Spec.Medusa
	if l := m.Draft; l != nil {
		man.Medusa = &manifest.Medusa{Heads: l.Steps, Columns: l.Columns, Tokens: l.Tokens, Chained: true, Cached: true}
	}
	if d == nil {
		return
	}
	man.Medusa = &manifest.Medusa{
		Heads: d.Heads, Layers: d.Layers, Columns: d.Columns, Shared: d.Shared, Tree: d.Plan, Accuracy: d.Accuracy,
		Tokens: d.Tokens, Chained: d.Chained, Threshold: s.Threshold, Alpha: s.Alpha,
	}
	if s.Accept != "exact" {
		man.Medusa.Accept = s.Accept
	}
}

// engine sets the engine settings of the model spec.
func (m *Model) engine(man *manifest.Manifest) {
	e := &m.Spec.Engine
	strategy, err := m.Spec.Strategy()
	if err != nil {
		panic("bug: the model spec was accepted: " + err.Error())
	}
	man.Engine = manifest.Engine{
		Sequences: e.Queries, Threads: e.Threads, Port: e.Port, MaxOutput: e.MaxOutput, Strategy: strategy, Devices: m.Spec.Devices, Speculate: e.Speculate, DraftTokens: e.DraftTokens,
		Layers: e.Layers, EncoderLayers: e.EncoderCPU, DecoderLayers: e.DecoderCPU, HostKVPercent: e.HostKVShare, HostEmbeddings: e.HostEmbed,
	}
}
