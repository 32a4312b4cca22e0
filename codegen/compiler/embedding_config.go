package compiler

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/spec"
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
	var err error
	if man.Activation, err = m.activation(); err != nil {
		m.opt.notice("%v; scores of pairs are of the function Sigmoid", err)
	}
	e, err := m.embedding(man)
	if err != nil {
		m.opt.notice("%v; embed takes the mean of the tokens", err)
		return
	}
	man.Embedding = e
}

// activation returns the name of the function from a pair's logit to its score. Each
// version of sentence-transformers stores it elsewhere. "": nowhere.
func (m *Model) activation() (string, error) {
	var config struct {
		Path string `json:"activation_fn"`
	}
	_, err := m.readJSON("config_sentence_transformers.json", &config)
	if own, ok := m.Spec.Config["sentence_transformers"].(map[string]any); ok && config.Path == "" {
		config.Path, _ = own["activation_fn"].(string)
	}
	if config.Path == "" {
		config.Path, _ = m.Spec.Config["sbert_ce_default_activation_function"].(string)
	}
	return config.Path[strings.LastIndex(config.Path, ".")+1:], err
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

// embedding reads modules.json and the files that it names; nil if there are none.
// A GGUF file has the pooling in its metadata.
func (m *Model) embedding(man *manifest.Manifest) (*manifest.Embedding, error) {
	for key, v := range m.set.Meta() {
		if n, ok := v.(uint32); ok && strings.HasSuffix(key, ".pooling_type") {
			if name := map[uint32]string{1: "mean", 2: "cls", 3: "last"}[n]; name != "" {
				return &manifest.Embedding{Pooling: name, Normalize: true}, nil
			}
		}
	}
	modules, err := spec.SentenceModules(m.Spec.ModelDir)
	if len(modules) == 0 || err != nil {
		return nil, err
	}
	e := &manifest.Embedding{Pooling: "mean"}
	for _, mod := range modules {
		switch mod.Kind {
		case "Transformer":
		case "Normalize":
			e.Normalize = true
		case "LogitScore":
			if man.Score, err = logitScore(mod.Config); err != nil {
				return nil, err
			}
		case "Pooling":
			e.Pooling = poolingName(spec.SentencePooling(mod.Config))
		case "Dense":
			if e.Dense = m.Spec.Config["sentence_dense"] != nil; !e.Dense {
				e.Missing = mod.Kind
			}
		default:
			e.Missing = mod.Kind
		}
	}
	if e.Pooling == "" {
		e.Missing = "Pooling of several kinds"
	}
	if e.Dense && m.Net.Topology() == "encoder_only" && e.Pooling == "mean" {
		e.Pooling = "cls" // each row of the output is that of the mean
	}
	return e, m.sentenceLimits(e)
}

// logitScore returns the tokens of a LogitScore module.
func logitScore(config map[string]any) (*manifest.LogitScore, error) {
	yes, ok := config["true_token_id"].(float64)
	if !ok {
		return nil, errors.New("module LogitScore: no true_token_id")
	}
	score := &manifest.LogitScore{True: int(yes)}
	if no, ok := config["false_token_id"].(float64); ok {
		n := int(no)
		score.False = &n
	}
	return score, nil
}

// poolingName returns the value of embed --pooling for a pooling of sentence-transformers.
func poolingName(word string) string {
	if word == "first" {
		return "cls"
	}
	return word
}

// sentenceLimits sets the maximum length of texts, their case and their prompts.
func (m *Model) sentenceLimits(e *manifest.Embedding) error {
	var limits struct {
		MaxTokens int  `json:"max_seq_length"`
		Lower     bool `json:"do_lower_case"`
	}
	if _, err := m.readJSON("sentence_bert_config.json", &limits); err != nil {
		return err
	}
	e.MaxTokens, e.Lower = limits.MaxTokens, limits.Lower
	var config struct {
		Prompts map[string]string `json:"prompts"`
		Default string            `json:"default_prompt_name"`
	}
	_, err := m.readJSON("config_sentence_transformers.json", &config)
	e.Prompts, e.Prompt = config.Prompts, config.Default
	return err
}

// maxSideFile is the maximum size of the small JSON files beside a model.
const maxSideFile = 1 << 20

// readJSON reads a file of the model's folder, if it exists.
func (m *Model) readJSON(name string, to any) (found bool, err error) {
	return regular.ReadJSON(m.Spec.ModelDir, filepath.Clean("/" + name)[1:], maxSideFile, to)
}
