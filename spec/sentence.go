package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// A SentenceModule is an entry of modules.json, in which sentence-transformers lists what
// it runs in sequence to compute a text's embedding.
type SentenceModule struct {
	Kind   string // last part of the module's type, such as Transformer, Pooling, Dense, Normalize
	Folder string // of its files, in the model's folder
	Config map[string]any
}

// SentenceModules returns the modules of a model's folder; none if it has no modules.json.
func SentenceModules(dir string) ([]SentenceModule, error) {
	var entries []struct{ Path, Type string }
	if found, err := regular.ReadJSON(dir, "modules.json", maxConfig, &entries); !found || err != nil {
		return nil, err
	}
	var out []SentenceModule
	for _, e := range entries {
		m := SentenceModule{Kind: e.Type[strings.LastIndex(e.Type, ".")+1:], Folder: filepath.Clean("/" + e.Path)[1:]}
		if m.Folder != "" {
			if _, err := regular.ReadJSON(dir, filepath.Join(m.Folder, "config.json"), maxConfig, &m.Config); err != nil {
				return nil, err
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// poolings maps the modes of the module Pooling to values of embedding_pooling. Its newer
// configurations name the mode itself.
var poolings = []struct{ key, word, name string }{
	{"pooling_mode_cls_token", "cls", "first"}, {"pooling_mode_mean_tokens", "mean", "mean"}, {"pooling_mode_max_tokens", "max", "max"},
	{"pooling_mode_lasttoken", "lasttoken", "last"}, {"pooling_mode_weightedmean_tokens", "weightedmean", "weighted"}, {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", "sqrt"},
}

// SentencePooling returns the pooling that a configuration of the module Pooling enables;
// "" if it enables several, which would be concatenated.
func SentencePooling(config map[string]any) string {
	name := ""
	for _, p := range poolings {
		if config[p.key] != true && config["pooling_mode"] != p.word {
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

// denseTensors is the prefix of the tensors of Dense modules after they are added to the
// model's, in front of the module's number.
const denseTensors = "sentence_dense."

// denseActivations maps PyTorch's activations to values of embedding_dense.
var denseActivations = map[string]string{"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu_erf", "SiLU": "silu", "Sigmoid": "sigmoid"}

// readSentence adds the pooling and the activations of Dense modules to the configuration,
// if Dense modules follow the module Pooling: the graph computes what they compute. Other
// sequences, and a damaged modules.json, are errors only of embeddings, not of the model.
func (s *Spec) readSentence() {
	modules, err := SentenceModules(s.ModelDir)
	if err != nil || len(modules) < 3 || modules[1].Kind != "Pooling" {
		return
	}
	var acts, folders []any
	for _, m := range modules[2:] {
		if m.Kind != "Dense" {
			break
		}
		name, _ := m.Config["activation_function"].(string)
		act := denseActivations[name[strings.LastIndex(name, ".")+1:]]
		if act == "" {
			return
		}
		acts, folders = append(acts, act), append(folders, m.Folder)
	}
	switch how := SentencePooling(modules[1].Config); how {
	case "first", "last", "mean":
		if len(acts) > 0 {
			s.Config["sentence_pooling"], s.Config["sentence_dense"], s.Config["sentence_folders"] = how, acts, folders
		}
	}
}

// joinDense adds the tensors of Dense modules to the model's.
func (s *Spec) joinDense(set *checkpoint.Set) error {
	folders, _ := s.Config["sentence_folders"].([]any)
	for i, f := range folders {
		folder, _ := f.(string)
		err := fs.ErrNotExist
		for _, name := range []string{"model.safetensors", "pytorch_model.bin"} {
			if err = set.Join(filepath.Join(s.ModelDir, folder, name), fmt.Sprintf("%s%d.", denseTensors, i)); !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("module Dense of modules.json: %w", err)
		}
	}
	return nil
}
