package manifest

// A CUDA describes the launches of a step on a GPU: kernels, order and grids. It is
// stored in the binary as a file of its own (cuda.json); the images contain the
// kernels' code.
type CUDA struct {
	Slots   []CUDASlot   `json:"slots"`
	Kernels []CUDAKernel `json:"kernels"`
	// Graphs are the launches of each graph of the manifest.
	Graphs [][]CUDALaunch `json:"graphs"`
	// Best is, for each graph, the number of parts in which the last launch finds the
	// argmax of a row of logits; 0: the graph has no logits.
	Best []int `json:"best,omitempty"`
	// Moves copy KV cache rows, one launch per state. A list of moves replaces the step:
	// page and row to copy to, page and row to copy from.
	Moves []CUDALaunch `json:"moves"`
	// CellMoves copy rows in cells, one launch per fixed-size state, whose kernel is named
	// ifl_move_in_cells_<state>. Cells take the place of pages in the list of moves.
	CellMoves []CUDALaunch `json:"cell_moves,omitempty"`
	Images    []CUDAImage  `json:"images"`
	Read      *int         `json:"read,omitempty"` // kernel that measures the memory's read bandwidth
	// Matmuls are the matmuls with kernels selected by the number of rows.
	Matmuls []Matmul `json:"matmuls,omitempty"`
	// Needs maps implementations to the compute capability of the only GPUs that have
	// them. They are not verified on hardware: only a profile selects them.
	Needs map[string]int `json:"needs,omitempty"`

	ActBytes  int64 `json:"act_bytes"`            // bytes per packed activation row
	RowFloats int   `json:"row_floats,omitempty"` // floats per row in device memory: temporaries, or a copy of the row for adapters
	// Adapted are the matmuls that adapters can change: the sites of each.
	Adapted   [][]CUDASites   `json:"adapted,omitempty"`
	Attention []CUDAAttention `json:"attention,omitempty"`
	Experts   []CUDAExperts   `json:"experts,omitempty"`
	Cross     int             `json:"cross"` // graph that reads the source's KV cache (cross-attention), or -1
	// TPSize and PartCols belong to a rank of a TP group: the number of ranks, and the
	// floats of the widest row that they exchange.
	TPSize   int `json:"tp_size,omitempty"`
	PartCols int `json:"part_cols,omitempty"`
	// HostBytes is the size of the lookup tables at the start of the weights, which may
	// stay in host memory.
	HostBytes int64 `json:"host_bytes,omitempty"`
	// Lookups bound the inputs that index lookup tables.
	Lookups []CUDALookup `json:"lookups"`
}

// A CUDASlot is a buffer that several values use one after another.
type CUDASlot struct {
	Cols int    `json:"cols"` // floats per row
	Rows string `json:"rows"` // role of its rows
}

// A CUDAKernel is a function in an image.
type CUDAKernel struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`              // compilation unit of the images
	Threads int    `json:"threads"`           // threads per block
	Shared  int    `json:"shared"`            // bytes of dynamic shared memory
	Early   bool   `json:"early"`             // may start before the kernels in front of it end (ifl_await_inputs)
	Compute int    `json:"compute,omitempty"` // see CUDAImage
}

// A CUDALaunch launches a kernel, or runs Body for each layer of a repeat. Every kernel
// takes the context, the step and the layer as arguments.
type CUDALaunch struct {
	Kernel int        `json:"kernel"`
	Grid   [3]CUDADim `json:"grid"`
	// The launch is skipped unless the dispatch table selects an implementation in
	// Choice for the number of rows, and the number of rows with role Rows is in [From,
	// To]; To 0: no upper bound.
	Choice   *CUDAChoice `json:"choice,omitempty"`
	Rows     string      `json:"rows,omitempty"`
	From, To int         `json:",omitempty"`
	Each     bool        `json:"each,omitempty"`    // compare the average rows per sequence, rounded up
	Times    int         `json:"times,omitempty"`   // compare this multiple of the rows; 0: 1
	Adapted  *int        `json:"adapted,omitempty"` // index in CUDA.Adapted: skipped unless the step has adapters and a loaded one changes the matmul

	// Comm, if not nil, replaces the kernel: communication between ranks.
	Comm *CUDAComm `json:"comm,omitempty"`
	// Gemm, if not nil, replaces the kernel: a matmul by cuBLASLt.
	Gemm *CUDAGemm `json:"gemm,omitempty"`

	Lo, Hi int          `json:",omitempty"` // layers of Body
	Body   []CUDALaunch `json:"body,omitempty"`
}

// A CUDASites is the sites of a weight: those of its layers, in order.
type CUDASites struct {
	First int `json:"first"` // index in Manifest.Sites
	Count int `json:"count"`
}

// A CUDAChoice selects implementations of a matmul.
type CUDAChoice struct {
	Matmul int   `json:"matmul"`
	Impls  []int `json:"impls"` // indices in Matmul.Impls
}

// A CUDAGemm multiplies the rows in the context's wide buffer by a matrix, which Unpack
// converts to f16 in chunks of whole panels, and writes to the product buffer. cuBLASLt
// computes it.
type CUDAGemm struct {
	N      int `json:"n"`      // rows of the matrix, a multiple of 16
	Ld     int `json:"ld"`     // row stride of both factors, in elements
	Unpack int `json:"unpack"` // kernel that converts the matrix; its fourth argument is the first panel
}

// GemmTile is the number of rows of either factor per block of the gemm kernel.
const GemmTile = 128

// WideRows returns how many rows the wide buffer of a matmul of n rows has, and
// WideCols how many columns at most for k columns: whole tiles.
func WideRows(n int) int { return (n + 255) &^ 255 }

// WideCols is described at WideRows.
func WideCols(k int) int { return (k + 255) &^ 255 }

// A CUDAComm is a communication between ranks in a step. The host copies the rows from
// and to the GPU.
type CUDAComm struct {
	Op   string `json:"op"`   // "send", "recv" or "exchange"
	Slot int    `json:"slot"` // buffer of the rows
	Cols int    `json:"cols"` // floats per row
	Peer int    `json:"peer"` // rank to send to or receive from
}

// A CUDADim is a grid dimension: N·⌈rows·Times/Per⌉ blocks, or N if Rows is "". If each
// sequence's rows start a new block (Ragged), there may be sequences-1 more of the
// ⌈rows·Times/Per⌉.
type CUDADim struct {
	N      int    `json:"n"`
	Rows   string `json:"rows,omitempty"`
	Per    int    `json:"per,omitempty"`
	Times  int    `json:"times,omitempty"` // like CUDALaunch.Times
	Ragged bool   `json:"ragged,omitempty"`
	Most   int    `json:"most,omitempty"` // maximum of ⌈rows·Times/Per⌉; 0: none
	// Splits: the dimension is the number of parts that the context is split into
	// (flash decoding).
	Splits bool `json:"splits,omitempty"`
	// Parts, if not 0, makes the dimension the number of blocks that divide K: at most N,
	// and with the other dimensions at most PerSM blocks per SM. Each stores this number
	// of floats.
	Parts int `json:"parts,omitempty"`
	PerSM int `json:"per_sm,omitempty"`
}

// Blocks returns the number of blocks for the rows of a role and a number of sequences;
// with Splits or Parts, without the division that they describe.
func (d CUDADim) Blocks(rows, seqs int) int {
	if d.Rows == "" {
		return d.N
	}
	n := (rows*max(d.Times, 1) + d.Per - 1) / d.Per
	if d.Most > 0 {
		n = min(n, d.Most)
	}
	if d.Ragged && n > 0 {
		n += max(seqs-1, 0)
	}
	return d.N * n
}

// PartsOf returns the number of blocks that divide K on a GPU if the other dimensions
// have the given number of blocks: as many as fill its SMs once.
func (d CUDADim) PartsOf(blocks, sms int) int { return Filling(blocks, d.PerSM*sms, d.N) }

// Filling returns how many times the given number of blocks fits into room: at least
// once, and at most the given number of times.
func Filling(blocks, room, most int) int { return max(min(room/max(blocks, 1), most), 1) }

// TopLogits is the most largest logits of a row that the kernel best finds: IFL_TOP.
const TopLogits = 64

// A CUDAAttention is the scratch memory of an attention.
type CUDAAttention struct {
	Counters int `json:"counters"` // per token
	Blocks   int `json:"blocks"`   // minimum blocks per part
	Floats   int `json:"floats"`   // floats per block of a part
}

// A CUDAExperts is the scratch memory of a mixture of experts per row.
type CUDAExperts struct {
	Experts int   `json:"experts"`
	TopK    int   `json:"top_k"`
	In      int64 `json:"in"`     // bytes per packed row
	Hidden  int64 `json:"hidden"` // bytes per packed hidden row
	Out     int64 `json:"out"`    // bytes per output row of an expert
}

// A CUDALookup requires an input of a graph (Entry) to be less than Below.
type CUDALookup struct {
	Entry int    `json:"entry"`
	Input string `json:"input"` // "id", "pos", "types"
	Below int    `json:"below"`
}

// A CUDAImage is the kernels of a unit, compiled for some GPUs.
type CUDAImage struct {
	Unit    string `json:"unit"`
	File    string `json:"file"`
	Compute int    `json:"compute,omitempty"` // compute capability of the only GPUs that it is for; 0: all
}

// CUDAFiles lists the binary's files with code for GPUs.
func (m *Manifest) CUDAFiles() []string {
	if m.CUDAPlan == "" {
		return nil
	}
	files := append([]string{m.CUDAPlan}, m.CUDAImages...)
	if m.CUDADriver != "" {
		files = append(files, m.CUDADriver)
	}
	return files
}
