//go:build unix

package device

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A Step is one forward pass over tokens of several sequences. The engine writes its
// inputs; a Context computes its outputs. The arrays have the size of the largest step;
// a step uses the first Tokens, OutRows and Seqs entries. The tokens of a sequence are
// adjacent, in ascending position. The arrays lie outside Go's heap because C code
// reads them.
type Step struct {
	Graph                 int // index in the manifest's Graphs
	Tokens, OutRows, Seqs int
	Typed                 bool  // Types is set
	Masked                bool  // Mask is set
	Adapted               bool  // Adapter is set
	KVPages               int32 // KV cache pages that may be in use, for devices that allocate physical memory in advance

	ID, Pos, Seq []int32 // [Tokens] token id, position, index of the sequence
	Slot         []int32 // [Tokens] row of the sequence's KV cache that the token writes
	Types        []int32 // [Tokens] token type
	OutRow       []int32 // [OutRows] token of each output row

	First, PageAt []int32 // [Seqs+1] index of each sequence's first token, and of its first page in Page
	Past          []int32 // [Seqs] KV cache rows written by earlier steps
	Page          []int32 // page ids
	Adapter       []int32 // [Seqs] number of each sequence's adapter (Context.SetAdapter), or -1
	XPageAt       []int32 // [Seqs+1] index in XPage of the first page of each sequence's source
	XPage         []int32 // page ids of encoder outputs (sources)
	XRows         []int32 // [Seqs] rows of each source

	// The cells of each sequence, which hold fixed-size states: those from the CellFrom-th
	// CellRows rows on, to that of its last row in this step. A cell without rows of earlier
	// steps, of a sequence that is not a tree, may be -1: it is not kept. The arrays are nil
	// for models without such states.
	CellAt   []int32 // [Seqs+1] index of each sequence's first cell in Cell
	CellFrom []int32 // [Seqs]
	Cell     []int32

	// [Tokens][MaskWords] Attention masks of draft trees. A sequence is a tree if the
	// mask of its first token in the step includes the token itself; then bit i of a
	// token's words is set if the token attends to the sequence's i-th token of the
	// step. All other sequences are causal.
	Mask      []uint64
	MaskWords int

	Out [][]float32 // rows of each output; Config.Outputs has the shapes
	// [OutRows] The largest logits of each row, in the order of Best.Order: TopK of them,
	// or only the argmax, or none if the device did not compute it or a logit was not
	// finite.
	Largest [][]Best

	// A device with its own memory may leave rows of the outputs in Kept there, except
	// those with a TopK of 0. It then sets Fetch.
	Kept []bool  // by output; only outputs with a row for each output row
	TopK []int32 // [OutRows] largest logits that the caller needs; 0: the whole row
	// Fetch copies a row of an output into Out if the device has left it in its memory.
	// nil: Out holds all rows. It must not be called after the next step was submitted,
	// except one of a graph that follows.
	Fetch func(output, row int) error
	// InPlace: the rows that a graph reads (manifest.Graph.Reads) are still in the
	// device's memory as the step before left them. Otherwise Out has them.
	InPlace bool

	// [OutRows] The token after each row: Read or Choose when the step is submitted. A device
	// to which a row is far may pick the token of a row with Choose by Choices, and leave the
	// row of logits out of Out. Then Chosen is the token.
	Chosen  []int32
	Choices []decode.Choice

	region *Region
}

// Values of Step.Chosen that are no token.
const (
	Read   = -1 // the caller reads the row of logits
	Choose = -2 // Step.Choices picks the token
)

// NewStep allocates the arrays of a step for the sizes in cfg.
func NewStep(cfg *Config) (*Step, error) {
	s := &Step{MaskWords: cfg.MaskWords}
	var measure Slab
	s.place(&measure, cfg)
	region, err := measure.Map("arrays of a step")
	if err != nil {
		return nil, err
	}
	s.region = region
	s.place(&Slab{Bytes: region.Bytes}, cfg)
	s.Largest = make([][]Best, cfg.MaxOutRows)
	s.Choices = make([]decode.Choice, cfg.MaxOutRows)
	return s, nil
}

// place allocates the arrays from a slab.
func (s *Step) place(b *Slab, cfg *Config) {
	ints := func(n int) []int32 { return Carve[int32](b, n) }
	s.ID, s.Pos, s.Seq = ints(cfg.MaxTokens), ints(cfg.MaxTokens), ints(cfg.MaxTokens)
	s.Slot, s.Types = ints(cfg.MaxTokens), ints(cfg.MaxTokens)
	s.OutRow = ints(cfg.MaxOutRows)
	s.Adapter = ints(cfg.MaxSeqs)
	s.First, s.Past, s.PageAt = ints(cfg.MaxSeqs+1), ints(cfg.MaxSeqs), ints(cfg.MaxSeqs+1)
	pages := max(cfg.Pages, cfg.MaxPages)
	s.Page = ints(pages)
	s.XPageAt, s.XPage, s.XRows = ints(cfg.MaxSeqs+1), ints(pages), ints(cfg.MaxSeqs)
	if cfg.MaxCells > 0 {
		s.CellAt, s.CellFrom, s.Cell = ints(cfg.MaxSeqs+1), ints(cfg.MaxSeqs), ints(cfg.MaxCells)
	}
	s.Mask = Carve[uint64](b, cfg.MaxTokens*cfg.MaskWords)
	s.Out = make([][]float32, len(cfg.Outputs))
	for i, a := range cfg.Outputs {
		s.Out[i] = Carve[float32](b, a.Rows*a.Cols)
	}
	s.Kept, s.TopK = Carve[bool](b, len(cfg.Outputs)), ints(cfg.MaxOutRows)
	s.Chosen = ints(cfg.MaxOutRows)
}

// ForgetLargest empties all of Largest.
func (s *Step) ForgetLargest() {
	for i := range s.Largest {
		s.Largest[i] = s.Largest[i][:0]
	}
}

// SetArgmax sets Largest of a row to the argmax of its parts: see Argmax.
func (s *Step) SetArgmax(row int, parts []Best, stride int) {
	s.Largest[row] = s.Largest[row][:0]
	if best, ok := Argmax(parts, stride); ok {
		s.Largest[row] = append(s.Largest[row], best)
	}
}

// SetLargest sets Largest of a row with a known argmax to its TopK largest of the list.
func (s *Step) SetLargest(row int, list []Best) {
	if len(s.Largest[row]) == 0 {
		return
	}
	top := s.Largest[row][:0]
	for _, b := range list {
		if b.At >= 0 {
			top = append(top, b)
		}
	}
	slices.SortFunc(top, Best.Order)
	s.Largest[row] = top[:min(len(top), int(s.TopK[row]))]
}

// Free unmaps the arrays. Copies of the step share them and become invalid too.
func (s *Step) Free() { s.region.Free() }
