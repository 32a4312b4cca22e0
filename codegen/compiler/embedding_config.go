package compiler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// describe sets an encoder's labels and the pooling of its embeddings, from
// config.json and the files of sentence-transformers.
func (m *Model) describe(man *manifest.Manifest) {
	man.Labels = labels(m.Spec.Config["id2label"])
	man.Problem, _ = m.Spec.Config["problem_type"].(string)
	if list, ok := m.Spec.Config["architectures"].([]any); ok && len(list) > 0 {
		name, _ := list[0].(string)
		man.LabelsTokens = strings.HasSuffix(name, "ForTokenClassification")
	}
	e, err := m.embedding()
	if err != nil {
		m.opt.notice("%v; embed takes the mean of the tokens", err)
		return
	}
	man.Embedding = e
}

// labels returns id2label as a list; nil if ids are missing.
func labels(v any) []string {
	byID, _ := v.(map[string]any)
	out := make([]string, len(byID))
	for k, name := range byID {
		i, err := strconv.Atoi(k)
		text, ok := name.(string)
		if err != nil || !ok || i < 0 || i >= len(out) || out[i] != "" {
			return nil
		}
		out[i] = text
	}
	return out
}

// poolings maps the modes of sentence-transformers' Pooling module to iflowc's
// names.
var poolings = []struct{ key, name string }{
	{"pooling_mode_cls_token", "cls"}, {"pooling_mode_mean_tokens", "mean"}, {"pooling_mode_max_tokens", "max"},
	{"pooling_mode_lasttoken", "last"}, {"pooling_mode_weightedmean_tokens", "weighted"}, {"pooling_mode_mean_sqrt_len_tokens", "sqrt"},
}

// embedding reads modules.json and the files that it names; nil if there are none.
// A GGUF file has the pooling in its metadata.
func (m *Model) embedding() (*manifest.Embedding, error) {
	for key, v := range m.set.Meta() {
		if n, ok := v.(uint32); ok && strings.HasSuffix(key, ".pooling_type") {
			if name := map[uint32]string{1: "mean", 2: "cls", 3: "last"}[n]; name != "" {
				return &manifest.Embedding{Pooling: name, Normalize: true}, nil
			}
		}
	}
	var modules []struct{ Path, Type string }
	if found, err := m.readJSON("modules.json", &modules); !found || err != nil {
		return nil, err
	}
	e := &manifest.Embedding{Pooling: "mean"}
	for _, mod := range modules {
		kind := mod.Type[strings.LastIndex(mod.Type, ".")+1:]
		switch kind {
		case "Transformer":
		case "Normalize":
			e.Normalize = true
		case "Pooling":
			var config map[string]any
			if _, err := m.readJSON(filepath.Join(mod.Path, "config.json"), &config); err != nil {
				return nil, err
			}
			e.Pooling = poolingOf(config)
		default:
			e.Missing = kind
		}
	}
	if e.Pooling == "" {
		e.Missing = "Pooling of several kinds"
	}
	var limits struct {
		MaxTokens int  `json:"max_seq_length"`
		Lower     bool `json:"do_lower_case"`
	}
	_, err := m.readJSON("sentence_bert_config.json", &limits)
	e.MaxTokens, e.Lower = limits.MaxTokens, limits.Lower
	return e, err
}

// poolingOf returns the pooling that a configuration enables; "" if it enables
// several, which would be concatenated.
func poolingOf(config map[string]any) string {
	name := ""
	for _, p := range poolings {
		if config[p.key] != true {
			continue
		}
		if name != "" {
			return ""
		}
		name = p.name
	}
	if name == "" {
		return "mean"
	}
	return name
}

// maxSideFile is the maximum size of the small JSON files beside a model.
const maxSideFile = 1 << 20

// readJSON reads a file of the model's folder, if it exists.
func (m *Model) readJSON(name string, to any) (found bool, err error) {
	path := filepath.Join(m.Spec.ModelDir, filepath.Clean("/"+name))
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false, nil
	}
	if st.Size() > maxSideFile {
		return true, fmt.Errorf("%s: %d bytes; expected at most %d", path, st.Size(), maxSideFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return true, err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return true, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}
