package manifest

// A CUDA says how the host runs a model's step on a GPU: which kernels, in
// which order, on which grids. What they compute stands in the images. It is a
// file of its own in the binary (cuda.json).
type CUDA struct {
	Slots   []CUDASlot   `json:"slots"`
	Kernels []CUDAKernel `json:"kernels"`
	// Graphs hold the launches of each graph of the manifest.
	Graphs [][]CUDALaunch `json:"graphs"`
	// Moves copy a state row, each in one state; they take four numbers in
	// place of a step: page and row to copy to, page and row to copy from.
	Moves  []CUDALaunch `json:"moves"`
	Images []CUDAImage  `json:"images"`
	Read   *int         `json:"read,omitempty"` // the kernel that measures how fast memory is read
	// Matmuls are the products whose kernels the number of rows chooses; the last
	// of them are those of a 16-bit product (CUDAGemm).
	Matmuls []Matmul `json:"matmuls,omitempty"`

	ActBytes  int64           `json:"act_bytes"` // packed rows: bytes a row
	Attention []CUDAAttention `json:"attention,omitempty"`
	Experts   []CUDAExperts   `json:"experts,omitempty"`
	Cross     int             `json:"cross"` // the graph that reads source states from outside, or -1
	// Of a rank of a partitioned model whose tensor group has several ranks:
	// how many, and the floats of the widest row that they exchange.
	TPSize   int `json:"tp_size,omitempty"`
	PartCols int `json:"part_cols,omitempty"`
	// HostBytes is how much of the weights, from their start, is tables that rows
	// are looked up in and nothing else, which may stay in the host's memory.
	HostBytes int64 `json:"host_bytes,omitempty"`
	// Lookups are tables that a graph looks inputs of every token up in.
	Lookups []CUDALookup `json:"lookups"`
}

// A CUDASlot is a buffer that values share in turn.
type CUDASlot struct {
	Cols int    `json:"cols"` // floats a row
	Rows string `json:"rows"` // role of its rows
}

// A CUDAKernel is a function of the images.
type CUDAKernel struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`    // the image's part that it is in
	Threads int    `json:"threads"` // of a block
	Shared  int    `json:"shared"`  // bytes of dynamic shared memory
}

// A CUDALaunch runs a kernel, or a body for each layer of a repeat. Every kernel
// takes the context, the step and the layer.
type CUDALaunch struct {
	Kernel int        `json:"kernel"`
	Grid   [3]CUDADim `json:"grid"`
	// Only where the table has one of these implementations for as many rows, and
	// the rows of this role are From … To; To 0: no bound.
	Choice   *CUDAChoice `json:"choice,omitempty"`
	Rows     string      `json:"rows,omitempty"`
	From, To int         `json:",omitempty"`
	Each     bool        `json:"each,omitempty"`  // of a sequence, on average, rounded up
	Times    int         `json:"times,omitempty"` // that many rows for each of the role's; 0: one

	// Instead of a kernel: the host talks to the other ranks about Rows.
	Comm *CUDAComm `json:"comm,omitempty"`
	// Or: a product of 16-bit matrices.
	Gemm *CUDAGemm `json:"gemm,omitempty"`

	Lo, Hi int          `json:",omitempty"` // layers of the body
	Body   []CUDALaunch `json:"body,omitempty"`
}

// A CUDAChoice says for which implementations of a matmul a launch is.
type CUDAChoice struct {
	Matmul int   `json:"matmul"`
	Impls  []int `json:"impls"` // of the matmul's
}

// A CUDAGemm multiplies rows that lie in the context's wide buffer by a matrix
// that Unpack brings there in pieces of whole panels, into its product buffer.
type CUDAGemm struct {
	N      int `json:"n"`       // rows of the matrix, a multiple of 16
	Ld     int `json:"ld"`      // 16-bit numbers from row to row of both factors
	Unpack int `json:"unpack"`  // kernel; its fourth argument is the first panel
	Kernel int `json:"product"` // kernel of the product, where cuBLASLt does not do it
}

// GemmTile is how many rows of either factor a block of CUDAGemm's kernel takes.
const GemmTile = 128

// A CUDAComm is what a rank says to others, or hears from them, in the middle of
// a step: the host brings it from the GPU and back.
type CUDAComm struct {
	Op   string `json:"op"`   // "send", "recv" or "exchange"
	Slot int    `json:"slot"` // buffer of the rows
	Cols int    `json:"cols"` // floats a row
	Peer int    `json:"peer"` // rank to send to or to hear from
}

// A CUDADim is N·⌈rows·Times/Per⌉ blocks, or N when Rows is "". Where each
// sequence's rows begin a block (Ragged) there may be one less than sequences
// more of the ⌈rows·Times/Per⌉.
type CUDADim struct {
	N      int    `json:"n"`
	Rows   string `json:"rows,omitempty"`
	Per    int    `json:"per,omitempty"`
	Times  int    `json:"times,omitempty"` // as the launch's
	Ragged bool   `json:"ragged,omitempty"`
	// Splits: instead, as many as the context is cut into with that many blocks
	// for each part.
	Splits bool `json:"splits,omitempty"`
}

// A CUDAAttention is what one attention's scratch takes.
type CUDAAttention struct {
	Counters int `json:"counters"` // for each token
	Blocks   int `json:"blocks"`   // fewest of a part
	Floats   int `json:"floats"`   // of the part of a block
}

// A CUDAExperts is what one mixture's scratch takes for a number of rows.
type CUDAExperts struct {
	Experts int   `json:"experts"`
	TopK    int   `json:"top_k"`
	In      int64 `json:"in"`     // bytes of a packed row
	Hidden  int64 `json:"hidden"` // bytes of a packed hidden row
}

// A CUDALookup says that entry's input must be below Below.
type CUDALookup struct {
	Entry int    `json:"entry"`
	Input string `json:"input"` // "id", "pos", "types"
	Below int    `json:"below"`
}

// A CUDAImage is the kernels compiled for some GPUs.
type CUDAImage struct {
	Unit string `json:"unit"`
	File string `json:"file"`
}

// CUDAFiles are the files of the binary that hold its code for GPUs.
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
