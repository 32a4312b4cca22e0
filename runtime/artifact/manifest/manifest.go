// Package manifest is what a per-model binary knows of its model: written by
// the code generator as JSON, read by the runtime. It holds no decisions of
// the runtime and nothing of the compiler.
package manifest

import "github.com/iflowc/iflowc/runtime/artifact/dtype"

// Format is the version of this file; a binary refuses any other.
const Format = 1

// A Manifest describes one compiled model.
type Manifest struct {
	Format   int    `json:"format"`
	Compiler string `json:"compiler"` // version of iflowc that made it
	Name     string `json:"name"`
	Hash     string `json:"hash"`    // SHA-256 over IR, sources and tokenizer
	Network  string `json:"network"` // decoder_only, encoder_only, encoder_decoder
	Vocab    int    `json:"vocab"`   // rows of logits that may be sampled
	Context  int    `json:"context"` // most rows of a sequence
	Params   int64  `json:"params"`  // number of weights

	BOS    int     `json:"bos"` // -1: none
	EOS    []int32 `json:"eos"`
	Pad    int     `json:"pad"`
	AddBOS bool    `json:"add_bos"`

	ToolTemplate    string `json:"tool_template,omitempty"`    // chat template of conversations with tools; "": Template
	EncoderTemplate string `json:"encoder_template,omitempty"` // of what an encoder-decoder's encoder reads; Template is the decoder's then

	Graphs  []Graph  `json:"graphs"`
	Weights []Weight `json:"weights"` // in packed order
	// WeightsID is packed.File.ID of the weights; "": any with the right shapes.
	WeightsID string   `json:"weights_id,omitempty"`
	States    []State  `json:"states"`
	Matmuls   []Matmul `json:"matmuls"`           // order of the dispatch table
	Scores    []Scores `json:"scores,omitempty"`  // of attentions, in order
	Regions   []Region `json:"regions,omitempty"` // what a trace's marks number
	Libs      []Lib    `json:"libs"`              // best first
	// Of a model that is spread over devices: its ranks, whose manifests hold
	// what Weights, Matmuls, Regions and Libs hold of a whole model.
	Partition *Partition `json:"partition,omitempty"`
	// Where there is code for GPUs: the file with its CUDA, and the files of
	// its images; in a test of that code also the driver that stands in.
	CUDAPlan   string   `json:"cuda_plan,omitempty"`
	CUDAImages []string `json:"cuda_images,omitempty"`
	CUDADriver string   `json:"cuda_driver,omitempty"`

	Generation   map[string]any `json:"generation,omitempty"`    // generation_config.json
	Template     string         `json:"template,omitempty"`      // chat template
	Labels       []string       `json:"labels,omitempty"`        // of classes, in order
	LabelsTokens bool           `json:"labels_tokens,omitempty"` // each token has a class, not the text
	Problem      string         `json:"problem,omitempty"`       // problem_type of config.json: what logits of classes mean
	Embedding    *Embedding     `json:"embedding,omitempty"`     // how texts become vectors, where the files say

	Medusa *Medusa           `json:"medusa,omitempty"` // nil: the model has no such heads
	Engine Engine            `json:"engine,omitzero"`  // how the specification wants it to be run
	Inputs map[string]string `json:"inputs,omitempty"` // SHA-256 of build inputs, for info
	Types  map[string]string `json:"types,omitempty"`  // weight kinds → types, for info
}

// An Embedding is how the files of sentence-transformers make a text's vector of
// its tokens' states.
type Embedding struct {
	Pooling   string `json:"pooling"` // as embed's --pooling
	Normalize bool   `json:"normalize,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"` // longer texts are cut; 0: at the model's context
	Lower     bool   `json:"lower,omitempty"`      // texts are made lower-case first
	Missing   string `json:"missing,omitempty"`    // a module that is not available
}

// MaxOutputs is how many arrays a step has room for: those that its graph
// yields, and those of the earlier step that it reads.
const MaxOutputs = 8

// A Graph is one entry of the step function.
type Graph struct {
	Name    string   `json:"name"`
	Outputs []Output `json:"outputs"`
	At      int      `json:"at,omitempty"` // place of the first output among the arrays of the step: behind those of the graph that Reads are of
	Reads   []Read   `json:"reads,omitempty"`
	Best    bool     `json:"best,omitempty"` // the step finds the argmax of each row of logits
}

// A Read is rows of tokens that an earlier step gave and a graph reads.
type Read struct {
	At   int `json:"at"`   // their place among the arrays of the step
	Cols int `json:"cols"` // floats a row, as stored
}

// An Output is one array a step fills.
type Output struct {
	Name string `json:"name"` // "logits", "hidden"
	Rows string `json:"rows"` // role of its rows: "tokens", "out_rows", "sequences"
	Cols int    `json:"cols"` // floats a row, as stored (padded to 16)
	Used int    `json:"used"` // floats a row that mean something
}

// A Weight is one packed matrix or vector.
type Weight struct {
	Name           string     `json:"name"`
	Sources        []string   `json:"sources,omitempty"` // the stored tensors that it is made of, by which calibration names it
	Index          []int      `json:"index,omitempty"`
	DType          dtype.Type `json:"dtype"`
	Rows           int        `json:"rows"`
	Cols           int        `json:"cols"`
	Layout         string     `json:"layout"` // "panel16" or "row"
	Offset         int64      `json:"offset"` // in the packed region
	Bytes          int64      `json:"bytes"`
	SparseOutliers int        `json:"sparse_outliers,omitempty"` // at most; they lie behind the panels
}

// A State is a paged record.
type State struct {
	Name      string `json:"name"`
	Count     int    `json:"count"`      // elements (layers)
	PageRows  int    `json:"page_rows"`  // 64
	PageBytes int64  `json:"page_bytes"` // of one page of one element
	Type      string `json:"type"`       // f16
}

// A Matmul is one matmul whose implementation the dispatch table chooses.
type Matmul struct {
	Name  string   `json:"name"` // "decode.wqkv"
	N     int      `json:"n"`
	K     int      `json:"k"`
	DType string   `json:"dtype"`
	Impls []string `json:"impls"` // "gemv", "flat_gemm", "gemm": indices of the table
	Rows  []int    `json:"rows"`  // default: Impls[i] from Rows[i] rows on; -1: not
	// What measuring the matmul takes: how activations are packed ("f32",
	// "a8_b64"), and of each implementation its C function and the rows of a tile.
	Act string `json:"act,omitempty"`
	// Groups of columns taken out of each row before it is rounded.
	Outliers int      `json:"outliers,omitempty"`
	Symbols  []string `json:"symbols,omitempty"`
	Tiles    []int    `json:"tiles,omitempty"`
	// What calibration adds up here: for each element of the weight, in the order
	// of Weights, K sums and the number of rows, from sum Calib on. "": nothing.
	Weight string `json:"weight,omitempty"`
	Calib  int64  `json:"calib,omitempty"`
	// And products of columns, where there are any: for each element as many
	// squares of Square columns as cover K, from float Hessians on.
	Hessians int64 `json:"hessians,omitempty"`
	Square   int   `json:"square,omitempty"`
}

// Scores is where calibration counts the rows of an attention by their largest
// score: for each layer ScoreBins counts, from sum Calib on.
type Scores struct {
	Calib  int64 `json:"calib"`
	Layers int   `json:"layers"`
}

// ScoreBins are the counts of a layer: of rows whose largest score, times log₂e,
// is from i − 128 to i − 127; the first and the last take all below and above.
const ScoreBins = 256

// A Region is one function of the step, which all threads run.
type Region struct {
	Graph  string `json:"graph"`
	Name   string `json:"name"`             // "wqkv", "attention"
	Doc    string `json:"doc"`              // its ops in order
	Weight string `json:"weight,omitempty"` // the matrix that it reads
	Matmul int    `json:"matmul,omitempty"` // of Matmuls, where it reads one
}

// A Lib is the model compiled for one instruction set.
type Lib struct {
	ISA   string   `json:"isa"`
	File  string   `json:"file"`
	Needs []string `json:"needs"` // processor features, as golang.org/x/sys/cpu names them: "AVX512VNNI"
}
