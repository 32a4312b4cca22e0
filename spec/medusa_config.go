package spec

import (
	"encoding/json"
	"path/filepath"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// A medusaConfig is the config.json of a checkpoint of heads. Its numbers of heads
// and layers are not read, because they are wrong in published checkpoints.
type medusaConfig struct {
	Accuracy medusa.Accuracy `json:"medusa_accuracy"` // measured by the trainer
	Tokens   []int32         `json:"medusa_tokens"`   // token ids of the rows of head.weight
}

// medusaConfig reads the file. It returns an empty configuration if there is no
// file or if the file is not valid JSON.
func (s *Spec) medusaConfig() (c medusaConfig) {
	if s.Medusa.File == "" {
		return c
	}
	raw, err := regular.ReadIn(filepath.Dir(s.medusaPath()), "config.json", maxConfig)
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return medusaConfig{}
	}
	return c
}

// accuracy returns the accuracy for the given number of heads; nil if it is not stated.
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
