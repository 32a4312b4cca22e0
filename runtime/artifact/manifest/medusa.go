package manifest

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// A Medusa describes the draft heads that graph "medusa" computes from the output
// "hidden" of graph "decode".
type Medusa struct {
	Heads     int             `json:"heads"`
	Layers    int             `json:"layers"`                        // residual blocks per head
	Columns   int             `json:"columns"`                       // tokens that a head predicts: the first of the vocabulary, or those of Tokens; the output has Heads·Columns floats
	Tokens    []int32         `json:"tokens,omitempty"`              // token of each column; nil: the column's index
	Chained   bool            `json:"chained,omitempty"`             // one autoregressive draft head (Hydra), run at most Heads times per draft; the output is its logits followed by its state
	Cached    bool            `json:"cached,omitempty"`              // the autoregressive head is a draft layer: it has rows in the KV cache, and reads the output "features" of every token
	Shared    bool            `json:"shared,omitempty"`              // the heads share the model's LM head
	Tree      *medusa.Plan    `json:"tree,omitempty"`                // the model spec's tree; nil: chosen at run time
	Accuracy  medusa.Accuracy `json:"accuracy,omitempty"`            // as measured by the trainer
	Accept    string          `json:"accept,omitempty"`              // default acceptance rule of requests: "typical"; "": match
	Threshold float64         `json:"posterior_threshold,omitempty"` // of typical acceptance; 0: 0.09
	Alpha     float64         `json:"posterior_alpha,omitempty"`     // of typical acceptance; 0: 0.3
}

// MedusaOutput returns the index of the heads' output among those of a step, or -1 if
// the model has no heads.
func (m *Manifest) MedusaOutput() int {
	for _, g := range m.Graphs {
		if g.Name == "medusa" && m.Medusa != nil {
			return g.At
		}
	}
	return -1
}

// Accept returns the default acceptance rule of drafted tokens; "": match.
func (m *Manifest) Accept() string {
	if m.Medusa == nil {
		return ""
	}
	return m.Medusa.Accept
}

// String returns a one-line description of the heads.
func (d *Medusa) String() string {
	lmHead := "own LM heads"
	if d.Shared {
		lmHead = "shared LM head"
	}
	if d.Cached {
		return fmt.Sprintf("draft layer, %d tokens, drafts of at most %d", d.Columns, d.Heads)
	}
	if d.Chained {
		return fmt.Sprintf("autoregressive draft head of %d blocks, %d tokens, drafts of at most %d", d.Layers, d.Columns, d.Heads)
	}
	tree := "adaptive tree"
	if d.Tree != nil {
		tree = fmt.Sprintf("tree of %d nodes", d.Tree.Nodes())
	}
	return fmt.Sprintf("%d heads of %d blocks, %s, %d tokens, %s", d.Heads, d.Layers, lmHead, d.Columns, tree)
}
