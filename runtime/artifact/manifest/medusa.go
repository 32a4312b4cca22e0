package manifest

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// A Medusa tells of the heads that graph "medusa" computes from the rows that
// graph "decode" gave as "hidden".
type Medusa struct {
	Heads     int             `json:"heads"`
	Layers    int             `json:"layers"`                        // residual blocks of a head
	Columns   int             `json:"columns"`                       // tokens that a head chooses from, the first of the vocabulary or those of Tokens; the output has heads·columns
	Tokens    []int32         `json:"tokens,omitempty"`              // the token of each column; nil: its number
	Chained   bool            `json:"chained,omitempty"`             // one head, run again behind each token that it drafts, Heads times at most; the output has the columns and the state behind
	Shared    bool            `json:"shared,omitempty"`              // behind the blocks stands the model's own head
	Tree      *medusa.Plan    `json:"tree,omitempty"`                // the specification's; nil: the one that pays most
	Accuracy  medusa.Accuracy `json:"accuracy,omitempty"`            // as the trainer measured it
	Accept    string          `json:"accept,omitempty"`              // of requests that do not say: "typical"; "": the usual rule
	Threshold float64         `json:"posterior_threshold,omitempty"` // of typical acceptance; 0: 0.09
	Alpha     float64         `json:"posterior_alpha,omitempty"`     // of typical acceptance; 0: 0.3
}

// MedusaOutput is the index of the heads' results among those of a step; -1: the
// model has no heads.
func (m *Manifest) MedusaOutput() int {
	for _, g := range m.Graphs {
		if g.Name == "medusa" && m.Medusa != nil {
			return g.At
		}
	}
	return -1
}

// Accept is the rule by which drafted tokens are accepted unless a request says;
// "": the usual one.
func (m *Manifest) Accept() string {
	if m.Medusa == nil {
		return ""
	}
	return m.Medusa.Accept
}

// String says in one line what the heads are.
func (d *Medusa) String() string {
	behind := "a matrix of each"
	if d.Shared {
		behind = "the model's own head"
	}
	if d.Chained {
		return fmt.Sprintf("a chained head of %d blocks, %d tokens; at most %d in a row", d.Layers, d.Columns, d.Heads)
	}
	tree := "the tree that pays most"
	if d.Tree != nil {
		tree = fmt.Sprintf("a tree of %d nodes", d.Tree.Nodes())
	}
	return fmt.Sprintf("%d heads of %d blocks, %s behind, %d tokens; %s", d.Heads, d.Layers, behind, d.Columns, tree)
}
