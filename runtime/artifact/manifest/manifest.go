// Package manifest defines the description of a model in a per-model binary. The code
// generator writes it as JSON, the runtime reads it. It depends on neither of them.
package manifest

import "github.com/iflowc/iflowc/runtime/artifact/dtype"

// Format is the version of the manifest; a binary rejects any other.
const Format = 1

// A Manifest describes one compiled model.
type Manifest struct {
	Format   int    `json:"format"`
	Compiler string `json:"compiler"` // version of iflowc
	Name     string `json:"name"`
	Hash     string `json:"hash"`    // SHA-256 over IR, sources and tokenizer
	Network  string `json:"network"` // decoder_only, encoder_only, encoder_decoder
	Vocab    int    `json:"vocab"`   // rows of logits that stand for tokens
	Context  int    `json:"context"` // maximum tokens of a sequence
	Params   int64  `json:"params"`  // number of weights

	TokenTypes int `json:"token_types,omitempty"` // number of token types; 0: one, which is no input

	BOS    int     `json:"bos"` // -1: none
	EOS    []int32 `json:"eos"`
	Pad    int     `json:"pad"`
	AddBOS bool    `json:"add_bos"`

	ToolTemplate    string `json:"tool_template,omitempty"`    // chat template for conversations with tools; "": Template
	EncoderTemplate string `json:"encoder_template,omitempty"` // template of an encoder-decoder's encoder input; then Template is the decoder's

	Graphs  []Graph  `json:"graphs"`
	Weights []Weight `json:"weights"` // in packed order
	// WeightsID is packed.File.ID of the weights; "": any weights with the right
	// shapes. Random weights are accepted too.
	WeightsID string   `json:"weights_id,omitempty"`
	States    []State  `json:"states"`
	Matmuls   []Matmul `json:"matmuls"`           // in the order of the dispatch table
	Scores    []Scores `json:"scores,omitempty"`  // attention scores in calibration, in the order of the attentions
	Regions   []Region `json:"regions,omitempty"` // numbered by the marks of a trace
	// Sites are the matrices to which adapters can add, by the numbers that the step uses.
	Sites     []Site     `json:"sites,omitempty"`
	RowOrders [][]RowRun `json:"row_orders,omitempty"`
	Libs      []Lib      `json:"libs"` // best first
	// Partition lists the ranks of a model on several devices. Then Weights, Matmuls,
	// Regions and Libs are in the ranks' manifests.
	Partition *Partition `json:"partition,omitempty"`
	// Code for GPUs, if any: the file of the CUDA plan, the files of the images, and in
	// tests a stand-in for the driver.
	CUDAPlan   string   `json:"cuda_plan,omitempty"`
	CUDAImages []string `json:"cuda_images,omitempty"`
	CUDADriver string   `json:"cuda_driver,omitempty"`

	// Generation holds the fields of generation_config.json, or of the file GenerationFile, and
	// the keys general.sampling.* of a GGUF file.
	Generation     map[string]any `json:"generation,omitempty"`
	GenerationFile string         `json:"generation_file,omitempty"`
	Language       *Language      `json:"language,omitempty"` // that translations start with by default; nil: none

	Template     string      `json:"template,omitempty"`      // chat template
	Labels       []string    `json:"labels,omitempty"`        // of the classes, in order
	LabelsTokens bool        `json:"labels_tokens,omitempty"` // each token is classified, not the text
	Problem      string      `json:"problem,omitempty"`       // problem_type of config.json: how to interpret the class logits
	Embedding    *Embedding  `json:"embedding,omitempty"`     // from the files of sentence-transformers, if any
	Activation   string      `json:"activation,omitempty"`    // PyTorch's function from a pair's logit to its score: "Identity", "Tanh"; "": "Sigmoid"
	Score        *LogitScore `json:"score,omitempty"`         // how a decoder's logits score a text; nil: by its classifier

	Medusa *Medusa           `json:"medusa,omitempty"` // nil: the model has no draft heads
	Engine Engine            `json:"engine,omitzero"`  // run-time defaults of the model spec
	Inputs map[string]string `json:"inputs,omitempty"` // SHA-256 of build inputs, for the subcommand info
	Types  map[string]string `json:"types,omitempty"`  // weight kind → type, for the subcommand info
}

// An Embedding describes how sentence-transformers' files compute a text's embedding
// from hidden states.
type Embedding struct {
	Pooling   string `json:"pooling"` // value of embed --pooling
	Normalize bool   `json:"normalize,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"` // longer texts are truncated; 0: to the model's context
	Lower     bool   `json:"lower,omitempty"`      // convert texts to lower case first
	Missing   string `json:"missing,omitempty"`    // a module that iflowc does not support
	Dense     bool   `json:"dense,omitempty"`      // the output "embedding" of the graph is pooled, not "hidden"

	Prompts map[string]string `json:"prompts,omitempty"` // text in front of the user's, by the name of its use
	Prompt  string            `json:"prompt,omitempty"`  // name of the prompt of texts without a name; "": none
}

// A Language is the target language of a tokenizer, which starts a translation.
type Language struct {
	Start int32 `json:"start"`          // its token
	Last  bool  `json:"last,omitempty"` // a call that names another one does not replace it
}

// A LogitScore scores a text by the logit of a token that would follow it, minus that of
// another (module LogitScore of sentence-transformers).
type LogitScore struct {
	True  int  `json:"true"`            // token id
	False *int `json:"false,omitempty"` // token id; nil: the score is the logit of True
}

// MaxOutputs is the maximum number of output arrays of a step, including those of an
// earlier step that its graph reads.
const MaxOutputs = 8

// A Graph is an entry point of the step function.
type Graph struct {
	Name    string   `json:"name"`
	Outputs []Output `json:"outputs"`
	At      int      `json:"at,omitempty"` // index of the first output among the step's arrays: after those of the graph that Reads refers to
	Reads   []Read   `json:"reads,omitempty"`
}

// A Read is an output of an earlier step that a graph reads, with one row per token.
type Read struct {
	At   int `json:"at"`   // index among the step's arrays
	Cols int `json:"cols"` // floats per row, as stored
}

// An Output is an array that a step fills.
type Output struct {
	Name string `json:"name"` // "logits", "hidden"
	Rows string `json:"rows"` // role of its rows: "tokens", "out_rows", "sequences"
	Cols int    `json:"cols"` // floats per row, as stored (padded to 16)
	Used int    `json:"used"` // floats per row without padding
}

// A Weight is one packed matrix or vector.
type Weight struct {
	Name           string     `json:"name"`
	Sources        []string   `json:"sources,omitempty"` // stored tensors that it is computed from; calibration uses these names
	Index          []int      `json:"index,omitempty"`
	DType          dtype.Type `json:"dtype"`
	Rows           int        `json:"rows"`
	Cols           int        `json:"cols"`
	Layout         string     `json:"layout"` // "panel16" or "row"
	Offset         int64      `json:"offset"` // from the start of the packed data
	Bytes          int64      `json:"bytes"`
	SparseOutliers int        `json:"sparse_outliers,omitempty"` // capacity; they are stored after the panels
}

// A State is a paged record, such as the KV cache, or a fixed-size state, whose
// PageRows and PageBytes are 0.
type State struct {
	Name      string `json:"name"`
	Count     int    `json:"count"`                // number of elements (layers)
	PageRows  int    `json:"page_rows"`            // 64
	PageBytes int64  `json:"page_bytes"`           // size of a page of one element
	CellBytes int64  `json:"cell_bytes,omitempty"` // fixed-size states: size of a cell of one element
	Type      string `json:"type"`                 // f16
}

// PageBytes lists the size of a page of every element of every paged state, in memory
// order.
func (m *Manifest) PageBytes() (list []int64) {
	for _, s := range m.States {
		for range s.Count {
			if s.CellBytes == 0 {
				list = append(list, s.PageBytes)
			}
		}
	}
	return list
}

// CellBytes lists the size of a cell of every element of every fixed-size state, in
// memory order.
func (m *Manifest) CellBytes() (list []int64) {
	for _, s := range m.States {
		for range s.Count {
			if s.CellBytes > 0 {
				list = append(list, s.CellBytes)
			}
		}
	}
	return list
}

// A Matmul is a matmul with an implementation selected by the dispatch table.
type Matmul struct {
	Name  string   `json:"name"` // "decode.wqkv"
	N     int      `json:"n"`
	K     int      `json:"k"`
	DType string   `json:"dtype"`
	Impls []string `json:"impls"` // "gemv", "flat_gemm", "gemm"; the table contains indices of this list
	Rows  []int    `json:"rows"`  // default: use Impls[i] from Rows[i] rows on; -1: never
	// For measuring the matmul: packing of the activations ("f32", "a8_b64"), and for
	// each implementation its C function and the rows of a tile.
	Act string `json:"act,omitempty"`
	// Number of outlier columns per row that are rounded separately.
	Outliers int      `json:"outliers,omitempty"`
	Symbols  []string `json:"symbols,omitempty"`
	Tiles    []int    `json:"tiles,omitempty"`
	// Calibration: for each element of the weight, in the order of Weights, K sums and
	// the number of rows, starting at sum Calib. "": none.
	Weight string `json:"weight,omitempty"`
	Calib  int64  `json:"calib,omitempty"`
	// GPTQ calibration, if any: for each element, the Hessian as squares of Square
	// columns that cover K, starting at float Hessians.
	Hessians int64 `json:"hessians,omitempty"`
	Square   int   `json:"square,omitempty"`
}

// Scores is the location of an attention's calibration counts: for each layer ScoreBins
// counts of rows by their largest score, starting at sum Calib.
type Scores struct {
	Calib  int64 `json:"calib"`
	Layers int   `json:"layers"`
}

// ScoreBins is the number of counts per layer. Bin i counts rows with a largest score
// times log₂e from i − 128 to i − 127; the first and the last bin include all values
// below and above.
const ScoreBins = 256

// A Region is a function of the step, which all threads run.
type Region struct {
	Graph string `json:"graph"`
	Name  string `json:"name"`            // "wqkv", "attention"
	Doc   string `json:"doc"`             // the ops in order
	Rows  string `json:"rows,omitempty"`  // role of its rows: "tokens", "out_rows", "sequences"
	Calls int    `json:"calls,omitempty"` // per step: the number of layers, or 1
	// What it reads, if anything: matrices and a KV cache.
	Products  []Product  `json:"products,omitempty"`
	Attention *Attention `json:"attention,omitempty"`
}

// A Product is a matmul of a region.
type Product struct {
	Matmul  int    `json:"matmul"` // index in Matmuls
	Weight  string `json:"weight"`
	Rows    int    `json:"rows"`              // of the matmul, per row of the region
	Experts int    `json:"experts,omitempty"` // Weight has a matrix for each of so many; Rows of them are chosen per row
}

// An Attention is the work of an attention whose rows see every earlier row of their
// sequence, or those in a window.
type Attention struct {
	State   string `json:"state"`
	MACs    int    `json:"macs"`              // multiply-adds per row and visible row of the KV cache
	Windows []int  `json:"windows,omitempty"` // of each call, or one for all; 0: none; negative: a chunk
	Causal  bool   `json:"causal,omitempty"`
}

// A Lib is the model's code, compiled for one instruction set.
type Lib struct {
	ISA   string   `json:"isa"`
	File  string   `json:"file"`
	Needs []string `json:"needs"` // CPU features by the names of golang.org/x/sys/cpu: "AVX512VNNI"
}
