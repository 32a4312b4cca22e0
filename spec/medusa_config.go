package spec

import (
	"encoding/json"
	"path/filepath"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// A medusaConfig is what is read of the config.json beside a checkpoint of heads.
// The numbers of heads and layers that such a file states are not: those of the
// published ones are wrong.
type medusaConfig struct {
	Accuracy medusa.Accuracy `json:"medusa_accuracy"` // as the trainer measured it
	Tokens   []int32         `json:"medusa_tokens"`   // of the rows of head.weight
}

// medusaConfig reads the file; where there is none, or no JSON, it is empty.
func (s *Spec) medusaConfig() (c medusaConfig) {
	if s.Medusa.File == "" {
		return c
	}
	raw, err := readBounded(filepath.Join(filepath.Dir(s.medusaPath()), "config.json"))
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return medusaConfig{}
	}
	return c
}

// accuracy is that of so many heads; nil where it is not stated.
func (c medusaConfig) accuracy(heads int) medusa.Accuracy {
	if len(c.Accuracy) < heads {
		return nil
	}
	for _, ranks := range c.Accuracy {
		for _, p := range ranks {
			if p < 0 || p > 1 {
				return nil
			}
		}
	}
	return c.Accuracy[:heads]
}
