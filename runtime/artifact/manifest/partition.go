package manifest

// A Partition describes how a model is divided among devices: its ranks, and the layers
// and tensor parts of each. The manifest with the Partition describes the whole model,
// without code and weights, which are in the ranks' manifests.
type Partition struct {
	Devices string `json:"devices"` // canonical device string
	Ranks   []Rank `json:"ranks"`
	// Files are the embedded files of all ranks: manifests and libraries.
	Files []string `json:"files"`
}

// PartitionFiles lists the binary's files of its ranks.
func (m *Manifest) PartitionFiles() []string {
	if m.Partition == nil {
		return nil
	}
	return m.Partition.Files
}

// A Rank is the part of a model on one device. Ranks are ordered by stage, then by TP
// rank.
type Rank struct {
	Device string `json:"device"`  // "0", "cpu"
	Stage  int    `json:"stage"`   // pipeline stage
	TPRank int    `json:"tp_rank"` // rank in the stage's TP group
	TPSize int    `json:"tp_size"` // size of the TP group

	Lo int `json:"lo"` // decoder layers of the stage: Lo ≤ l < Hi
	Hi int `json:"hi"`

	Manifest string    `json:"manifest"` // embedded file: the rank's Manifest; its Libs are embedded files too
	Weights  string    `json:"weights"`  // suffix of the program's name in the name of the weights file: "weights.0of2"
	Traffic  []Traffic `json:"traffic"`  // communication of each graph of Manifest
}

// Traffic is the communication of a rank in one step of a graph. Bytes are those that
// the rank passes to the transport: its contribution to an exchange counts once, for
// any number of ranks.
type Traffic struct {
	Exchanges       int   `json:"exchanges,omitempty"`         // with the TP group, in a step with tokens
	OutRowExchanges int   `json:"out_row_exchanges,omitempty"` // additional ones in a step with output rows
	ExchangedToken  int64 `json:"exchanged_token,omitempty"`   // bytes per token
	ExchangedOutRow int64 `json:"exchanged_out_row,omitempty"` // bytes per output row
	Sends           int   `json:"sends,omitempty"`             // in a step with tokens
	Receives        int   `json:"receives,omitempty"`
	SentToken       int64 `json:"sent_token,omitempty"` // bytes per token
	ReceivedToken   int64 `json:"received_token,omitempty"`

	// Results that the rank returns to rank 0 if they are processes. All are 0 for other ranks.
	ResultToken    int64 `json:"result_token,omitempty"`    // bytes per token
	ResultOutRow   int64 `json:"result_out_row,omitempty"`  // bytes per output row, with those of its chosen token
	ResultRead     int64 `json:"result_read,omitempty"`     // further bytes per output row that rank 0 reads
	ResultSequence int64 `json:"result_sequence,omitempty"` // bytes per sequence
}

// Exchanged returns the bytes that the rank contributes to the exchanges of a step.
func (t Traffic) Exchanged(tokens, outRows int) int64 {
	return int64(tokens)*t.ExchangedToken + int64(outRows)*t.ExchangedOutRow
}

// Sent returns the bytes that the rank sends to other stages in a step.
func (t Traffic) Sent(tokens int) int64 { return int64(tokens) * t.SentToken }

// Replaced reports whether nobody reads a row of an output if the token after it was chosen
// where it was computed. Draft heads read hidden states.
func (m *Manifest) Replaced(o *Output) bool {
	return o.Rows == "out_rows" && (o.Name == "logits" || m.Medusa == nil)
}

// tokenBytes is the size of a chosen token.
const tokenBytes = 4

// Returns sets the results of the rank that returns the outputs of one of m's graphs to rank 0.
func (t *Traffic) Returns(m *Manifest, g *Graph) {
	t.ResultOutRow = tokenBytes
	for _, o := range g.Outputs {
		bytes := int64(o.Cols) * 4
		switch {
		case o.Rows == "tokens":
			t.ResultToken += bytes
		case o.Rows == "sequences":
			t.ResultSequence += bytes
		case m.Replaced(&o):
			t.ResultRead += bytes
		default:
			t.ResultOutRow += bytes
		}
	}
}

// Results returns the bytes of results that the rank returns to rank 0 in a step, in which it
// chooses the tokens of some output rows. A step without output rows has a word.
func (t Traffic) Results(tokens, outRows, seqs, chosen int) int64 {
	if t.ResultOutRow == 0 {
		return 0
	}
	n := int64(tokens)*t.ResultToken + int64(outRows)*t.ResultOutRow + int64(seqs)*t.ResultSequence + int64(outRows-chosen)*t.ResultRead
	if outRows == 0 {
		n += tokenBytes
	}
	return n
}

// Stages returns the number of pipeline stages.
func (p *Partition) Stages() int {
	n := 0
	for _, r := range p.Ranks {
		n = max(n, r.Stage+1)
	}
	return n
}

// Output returns the rank that holds a step's results: the first rank of the last
// stage.
func (p *Partition) Output() int {
	for i, r := range p.Ranks {
		if r.Stage == p.Stages()-1 {
			return i
		}
	}
	return 0
}

// Follows reports whether the graph reads outputs of an earlier step. In a partitioned
// model only rank 0, which receives these, runs it.
func (g *Graph) Follows() bool { return g.At > 0 }
