package spec

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/spec/checkpoint"
)

// A Draft is the section draft of a model spec. It adds a draft layer, a decoder layer
// that drafts tokens for speculative decoding. It reads the model's states and the
// embeddings of the tokens that follow, and has a KV cache of its own.
type Draft struct {
	Kind   string `yaml:"kind" words:"mtp|eagle3"` // mtp: the model's layer for multi-token prediction (DeepSeek-V3, §2.2); eagle3: an EAGLE-3 head (Li et al. 2025); default: eagle3 with file, else mtp
	File   string `yaml:"file"`                    // eagle3: folder of the head, with config.json and weights, relative to model_dir
	Tokens int    `yaml:"tokens"`                  // maximum number of tokens drafted in a row; 0: 6
	Layers []int  `yaml:"layers"`                  // eagle3: layers whose inputs the head reads, in ascending order; default: those of the head's config.json, else 2, N/2 and N−3 of N layers
}

// Kinds of draft layers.
const (
	draftMTP    = "mtp"
	draftEagle3 = "eagle3"
)

// joinedDraft is the prefix of the tensors of an EAGLE-3 head after they are added to the
// model's tensors.
const joinedDraft = "draft."

// maxDraftTokens is the upper bound of Draft.Tokens.
const maxDraftTokens = 64

// drafts reports whether the model spec asks for a draft layer.
func (s *Spec) drafts() bool { return s.Draft.Kind != "" }

// checkDraft checks the values of the section that do not depend on files, and fills in
// its kind.
func (s *Spec) checkDraft() error {
	d := &s.Draft
	if s.Options.Draft == draftMTP {
		*d = Draft{Kind: draftMTP, Tokens: d.Tokens}
	} else if s.Options.Draft != "" {
		path, err := filepath.Abs(s.Options.Draft)
		if err != nil {
			return err
		}
		*d = Draft{Kind: draftEagle3, File: path, Tokens: d.Tokens}
	}
	if d.Kind == "" && s.Set("draft") {
		if d.Kind = draftMTP; d.File != "" {
			d.Kind = draftEagle3
		}
	}
	switch {
	case !s.drafts():
		return nil
	case s.Set("medusa"):
		return errAt(s.Pos("medusa"), "medusa: the model spec has a section draft too; want one of them")
	case d.Tokens < 0 || d.Tokens > maxDraftTokens:
		return errAt(s.Pos("draft.tokens"), "draft.tokens: want a number from 1 to %d, or 0 for %d", maxDraftTokens, defaultChain)
	case d.Kind == draftEagle3 && d.File == "":
		return errAt(s.Pos("draft"), "draft: an EAGLE-3 head is a checkpoint of its own; want file")
	case d.Kind == draftMTP && d.File != "":
		return errAt(s.Pos("draft.file"), "draft.file: a layer for multi-token prediction is in the model's own files; want kind: eagle3, or no file")
	}
	return nil
}

// draftFolder is the folder of an EAGLE-3 head.
func (s *Spec) draftFolder() string {
	if filepath.IsAbs(s.Draft.File) {
		return s.Draft.File
	}
	return filepath.Join(s.ModelDir, s.Draft.File)
}

// joinDraft adds the tensors of an EAGLE-3 head to those of the model.
func (s *Spec) joinDraft(set *checkpoint.Set) error {
	if s.Draft.Kind != draftEagle3 {
		return nil
	}
	head, err := checkpoint.OpenDir(s.draftFolder())
	if err == nil {
		err = set.JoinSet(head, joinedDraft)
	}
	if err != nil {
		return errAt(s.Pos("draft.file"), "draft.file: %v", err)
	}
	return nil
}

// isDraft reports whether a stored tensor belongs to the draft layer.
func (s *Spec) isDraft(name, prefix string) bool {
	return s.drafts() && (strings.HasPrefix(name, joinedDraft) || prefix != "" && strings.HasPrefix(name, prefix))
}

// eagleConfig reads the config.json of an EAGLE-3 head. That of the speculators library
// nests the parameters of the layer.
func (s *Spec) eagleConfig() (map[string]any, error) {
	path := filepath.Join(s.draftFolder(), "config.json")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errAt(s.Pos("draft.file"), "draft.file: no %s; want the folder of an EAGLE-3 head", path)
	}
	c, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	if layer, nested := c["transformer_layer_config"].(map[string]any); nested {
		c = maps.Clone(c)
		maps.Copy(c, layer)
	}
	if c["model_type"] == nil {
		c["model_type"] = "llama"
	}
	return c, nil
}

// draftSpec returns the spec of the draft layer as a decoder of one layer. It has the
// options of the model spec, and hyper-parameters of its own.
func (s *Spec) draftSpec() (*Spec, error) {
	d := &Spec{Version: Version, Name: s.Name, File: s.File, ModelDir: s.ModelDir, ModelFileFormat: s.ModelFileFormat, Quant: s.Quant, KVType: s.KVType, set: positions{}}
	if s.Draft.Kind == draftEagle3 {
		c, err := s.eagleConfig()
		if err != nil {
			return nil, err
		}
		d.File, d.Config, d.ModelFileFormat = filepath.Join(s.draftFolder(), "config.json"), c, "safetensors" // whatever the model's files are
		return d, d.derive(nil)
	}
	fam, err := s.family("")
	if err != nil {
		return nil, err
	}
	layer, known := fam.mtp()
	if !known {
		return nil, errAt(s.Pos("draft"), "draft: iflowc knows no layer for multi-token prediction of family %s", fam.name)
	}
	d.Family, d.VocabSize, d.PaddedVocabSize = s.Family, s.VocabSize, s.PaddedVocabSize
	d.Config = maps.Clone(s.configFile)
	maps.Copy(d.Config, s.Hyper)
	d.Config["num_hidden_layers"] = 1.0
	maps.Copy(d.Config, layer)
	return d, d.derive(s.network)
}
