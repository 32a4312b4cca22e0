//go:build unix

package device

// NoToken is the entry of Step.Greedy for a row whose argmax is not known.
const NoToken = -1

// A Step is one forward pass over tokens of several sequences: what the engine
// writes for a Context to compute, and what that gives. Its arrays are as long
// as the largest step; a step uses the first Tokens, OutRows and Seqs entries.
// The tokens of a sequence stand together, in ascending position. The arrays lie
// outside Go's heap, because C reads them.
//
// The id of each sequence's adapter would be one more array of Seqs entries
// (ifl_step.adapter), and so would the index of its fixed-size state, beside its
// pages.
type Step struct {
	Graph                 int // index in the manifest's Graphs
	Tokens, OutRows, Seqs int
	Typed                 bool  // Types means something
	Masked                bool  // Mask does
	TopPage               int32 // the highest page that was ever in use, for devices that take memory ahead

	ID, Pos, Seq []int32 // [Tokens] token id, position, index of the sequence
	Slot         []int32 // [Tokens] row of its sequence's KV cache that the token writes
	Types        []int32 // [Tokens] token type
	OutRow       []int32 // [OutRows] token of each output row

	First, PageAt []int32 // [Seqs+1] where each sequence's tokens begin, and its pages in Page
	Past          []int32 // [Seqs] rows of the KV cache written before
	Page          []int32 // page ids
	XPageAt       []int32 // [Seqs+1] where the pages of each sequence's source begin in XPage
	XPage         []int32 // page ids of sources
	XRows         []int32 // [Seqs] rows of each source

	// [Tokens][MaskWords]: a sequence whose first token in the step sees itself is a
	// tree, of which bit i of a token's words says that it sees the sequence's i-th
	// token of the step. Every other sequence is causal.
	Mask      []uint64
	MaskWords int

	Out [][]float32 // an array of rows for each output; Config.Outputs has their shapes
	// [OutRows] The argmax of each row of logits, NoToken where the graph did not
	// look for it (manifest.Graph.Best), the device cannot, or a logit was not
	// finite. Tokens that a device samples itself would come here too, with no rows
	// in Out.
	Greedy []int32

	region *Region
}

// NewStep makes the arrays of a step of at most cfg's shapes.
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
	s.ForgetGreedy()
	return s, nil
}

// place lays the arrays out in a slab.
func (s *Step) place(b *Slab, cfg *Config) {
	ints := func(n int) []int32 { return Carve[int32](b, n) }
	s.ID, s.Pos, s.Seq = ints(cfg.MaxTokens), ints(cfg.MaxTokens), ints(cfg.MaxTokens)
	s.Slot, s.Types = ints(cfg.MaxTokens), ints(cfg.MaxTokens)
	s.OutRow = ints(cfg.MaxOutRows)
	s.First, s.Past, s.PageAt = ints(cfg.MaxSeqs+1), ints(cfg.MaxSeqs), ints(cfg.MaxSeqs+1)
	pages := max(cfg.Pages, cfg.MaxPages)
	s.Page = ints(pages)
	s.XPageAt, s.XPage, s.XRows = ints(cfg.MaxSeqs+1), ints(pages), ints(cfg.MaxSeqs)
	s.Mask = Carve[uint64](b, cfg.MaxTokens*cfg.MaskWords)
	s.Out = make([][]float32, len(cfg.Outputs))
	for i, a := range cfg.Outputs {
		s.Out[i] = Carve[float32](b, a.Rows*a.Cols)
	}
	s.Greedy = ints(cfg.MaxOutRows)
}

// ForgetGreedy sets all of Greedy to NoToken.
func (s *Step) ForgetGreedy() {
	for i := range s.Greedy {
		s.Greedy[i] = NoToken
	}
}

// Free gives the arrays' memory back. Copies of the step lose it too.
func (s *Step) Free() { s.region.Free() }
