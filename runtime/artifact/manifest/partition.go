package manifest

// A Partition says how a model is spread over devices: which ranks there are,
// and what each of them runs. The manifest that holds it describes the model as
// users see it, without code or weights; those are in the ranks' manifests.
type Partition struct {
	Devices string `json:"devices"` // canonical device string
	Ranks   []Rank `json:"ranks"`
	// Files are the embedded files of all ranks: manifests and libraries.
	Files []string `json:"files"`
}

// PartitionFiles are the files of the binary that hold its ranks' programs.
func (m *Manifest) PartitionFiles() []string {
	if m.Partition == nil {
		return nil
	}
	return m.Partition.Files
}

// A Rank is what one device of a partitioned model does. Ranks are numbered
// stage by stage, and by TP rank in each.
type Rank struct {
	Device string `json:"device"`  // "0", "cpu"
	Stage  int    `json:"stage"`   // group of layers
	TPRank int    `json:"tp_rank"` // of the group's tensor group
	TPSize int    `json:"tp_size"` // how many it has

	Lo int `json:"lo"` // its decoder layers are lo ≤ l < hi
	Hi int `json:"hi"`

	Manifest string    `json:"manifest"` // embedded file: the Manifest of the rank's program, whose Libs are embedded files too
	Weights  string    `json:"weights"`  // what stands behind the program's name in the name of its weights: "weights.0of2"
	Traffic  []Traffic `json:"traffic"`  // of each graph of Manifest
}

// Traffic is what a rank tells others in one step of a graph. Bytes are those it
// hands to the transport itself: what it contributes to an exchange counts once,
// whatever the number of ranks.
type Traffic struct {
	Exchanges       int   `json:"exchanges,omitempty"`         // with the ranks of its group, in a step with tokens
	OutRowExchanges int   `json:"out_row_exchanges,omitempty"` // further ones in a step with output rows
	ExchangedToken  int64 `json:"exchanged_token,omitempty"`   // bytes a token
	ExchangedOutRow int64 `json:"exchanged_out_row,omitempty"` // bytes an output row
	Sends           int   `json:"sends,omitempty"`             // in a step with tokens
	Receives        int   `json:"receives,omitempty"`
	SentToken       int64 `json:"sent_token,omitempty"` // bytes a token
	ReceivedToken   int64 `json:"received_token,omitempty"`
}

// Exchanged is the bytes that the rank contributes to the exchanges of a step.
func (t Traffic) Exchanged(tokens, outRows int) int64 {
	return int64(tokens)*t.ExchangedToken + int64(outRows)*t.ExchangedOutRow
}

// Sent is the bytes that the rank sends to other groups in a step.
func (t Traffic) Sent(tokens int) int64 { return int64(tokens) * t.SentToken }

// Stages is the number of groups of layers.
func (p *Partition) Stages() int {
	n := 0
	for _, r := range p.Ranks {
		n = max(n, r.Stage+1)
	}
	return n
}

// Output is the rank that has a step's results: the first rank of the last
// group.
func (p *Partition) Output() int {
	for i, r := range p.Ranks {
		if r.Stage == p.Stages()-1 {
			return i
		}
	}
	return 0
}

// Follows says whether a graph reads what an earlier step gave. Of a partitioned
// model rank 0, which has got that, runs it alone.
func (g *Graph) Follows() bool { return g.At > 0 }
