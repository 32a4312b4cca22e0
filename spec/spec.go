package spec

import (
	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Version is the version of the model spec language: `iflow: 1`.
const Version = 1

// Options are settings from the command line that override a model spec.
type Options struct {
	ModelDir   string // folder of the model's files; "": the model spec's
	Quant      string // weight type for all tensors, or a budget; "f32" also sets f32 activations and KV cache
	KV         string // KV cache type
	Devices    string // device string
	MaxContext int    // positions; 0: the model spec's
	Draft      string // draft layer: "mtp", or the folder of an EAGLE-3 head; "": the model spec's

	// Pulled returns the folder of a hub repository on this machine. It is called
	// for specs that name a repository and have no files beside them. If it is
	// nil, no repository is found.
	Pulled func(repository string) (dir string, ok bool)
}

// A Spec is a model spec as written or derived, with its config.json or the
// metadata of the weight file. The keys are those of Inferflow's model_spec.json
// and engine configuration, and iflowc's own.
type Spec struct {
	Version  int    `yaml:"iflow"`     // version of the model spec language; 1 is the only one
	Name     string `yaml:"name"`      // name of the model, shown in listings and used by the service; default: the file's name without its extension
	Family   string `yaml:"family"`    // file of models/families that supplies the defaults; default: the one of config.json's model_type
	ModelDir string `yaml:"model_dir"` // folder of the model's files, relative to the model spec's folder; --model-dir overrides it

	Repository string `yaml:"repository"` // hub repository of the model's files, OWNER/NAME; `iflowc pull` fetches it
	Parameters int    `yaml:"parameters"` // number of parameters, shown in listings

	ConfigFile      string   `yaml:"config_file"`                                                         // hyper-parameter file in model_dir; default: config.json if there is one, else the metadata of the weight file
	ModelFiles      []string `yaml:"model_files"`                                                         // weight files in model_dir; default: found by their format
	ModelFileFormat string   `yaml:"model_file_format" words:"std|pickle|safetensors|ggml|gguf|llama2.c"` // format of the weight files; default: detected; std and ggml are Inferflow's formats

	VocabSize       int `yaml:"vocab_size"`        // number of token ids that may be sampled; default: config.json's vocab_size, else the rows of the embedding table
	InputVocabSize  int `yaml:"input_vocab_size"`  // Inferflow's name for the same number; vocab_size overrides it
	PaddedVocabSize int `yaml:"padded_vocab_size"` // rows of the embedding table, if it has more than vocab_size; the padding rows are never sampled
	OutputVocabSize int `yaml:"output_vocab_size"` // accepted and ignored, as Inferflow's files contain it

	UnkToken string `yaml:"unk_token"` // accepted and ignored: the tokenizer files define the unknown token
	PadToken string `yaml:"pad_token"` // accepted and ignored: the tokenizer files define the padding token
	BosToken string `yaml:"bos_token"` // accepted and ignored: the tokenizer files and generation_config.json define the first token
	EosToken string `yaml:"eos_token"` // accepted and ignored: the tokenizer files and generation_config.json define the tokens that end a text

	TokenizerFile         string   `yaml:"tokenizer_file"`                                           // tokenizer file in model_dir; default: the first there is of tokenizer.json, SentencePiece's tokenizer.model, spiece.model, sentencepiece.bpe.model and source.spm, vocab.json with merges.txt, vocab.txt, tekken.json, tiktoken.model and qwen.tiktoken
	TokenizerFiles        []string `yaml:"tokenizer_files"`                                          // tokenizer files in model_dir, read in addition to the usual names
	TokenBytesMapping     int      `yaml:"token_bytes_mapping"`                                      // accepted and ignored (Inferflow: 1 if tokens are in GPT-2's printable byte alphabet)
	TokenRemapFile        string   `yaml:"token_remap_file"`                                         // accepted and ignored (Inferflow: a pickled map from tokenizer ids to model ids)
	TokenizationAlgorithm string   `yaml:"tokenization_algorithm" words:"fmm|fmm2|bpe|ulm|std|auto"` // accepted and ignored: the tokenizer files define the algorithm
	GenerationConfig      string   `yaml:"generation_config"`                                        // file in model_dir with the defaults of sampling; default: generation_config.json

	Hyper   map[string]any `yaml:"hyper"`             // hyper-parameters under their names in config.json, which they override
	Network Network        `yaml:"network_structure"` // modules of the network; the family sets the defaults
	Graph   string         `yaml:"graph"`             // module in IR text, used in place of network_structure; $name inserts a hyper-parameter, ${…} an expression
	Ignore  []string       `yaml:"ignore_tensors"`    // patterns of stored tensors that are not part of the computation, with * for any characters

	Quant                tensor.DType `yaml:"quant"`                  // type of all matrices, or a budget: bits per weight (4.5), the size of the weights (3GB), fit or loss=1%; default: the type that they are stored in
	Types                OrderedMap   `yaml:"types"`                  // types of single weights, instead of quant: name as in `iflowc ir` or standard name, or a glob pattern → type; layers may follow, as in w_down[0..4]; the last match wins
	KVType               tensor.DType `yaml:"kv_type"`                // type of the KV cache; default: f16, or f32 for f32 weights
	Activations          string       `yaml:"activations"`            // type that the inputs of matmuls are rounded to: f32, bf16, int8 or int8+N with N outlier groups per row; default: by the weight type
	Importance           string       `yaml:"importance"`             // importance matrix in model_dir, which weights the errors of quantization; `BIN calibrate` writes one
	TensorQuantThreshold int          `yaml:"tensor_quant_threshold"` // number of elements; quant does not apply to smaller matrices; default: 0
	DeltaTensorRatio     float64      `yaml:"delta_tensor_ratio"`     // fraction of the entries of a quantized matrix that are kept as sparse outliers, at most 0.05; default: 0
	Devices              string       `yaml:"devices"`                // devices that share the model: `0;1` is a pipeline, `0&1` a tensor-parallel group, `auto` chooses; default: one device
	PromptTemplate       string       `yaml:"prompt_template"`        // chat template, used if the model's files have none: a template in Inferflow's brace language or Jinja, or the name of a built-in one
	ChatTemplate         string       `yaml:"chat_template"`          // chat template, used in place of that of the model's files; the same languages as prompt_template
	EncoderInputTemplate string       `yaml:"encoder_input_template"` // template of the encoder's input, for encoder-decoder models
	DecoderInputTemplate string       `yaml:"decoder_input_template"` // Inferflow's other name of prompt_template
	DecodingStrategy     any          `yaml:"decoding_strategy"`      // default sampling method: a name, or a map with a name and its parameters
	MaxContextLen        int          `yaml:"max_context_len"`        // maximum tokens of a sequence; default: config.json's max_position_embeddings; of encoders, at most 8192
	Engine               Engine       `yaml:"engine"`                 // how the model is run; the keys are those of Inferflow's engine configuration
	Medusa               Medusa       `yaml:"medusa"`                 // draft heads for speculative decoding
	Draft                Draft        `yaml:"draft"`                  // draft layer for speculative decoding

	Comments any `yaml:"COMMENTS"`   // ignored, as in Inferflow
	TopQKV   any `yaml:"qkv_format"` // ignored; two of Inferflow's files have the key at the top level

	// Budget is that of `quant`, if it has one in place of a type; Quant is then Invalid.
	Budget Budget `yaml:"-"`
	// Config is config.json, or the metadata of a GGUF or llama2.c file under
	// config.json's names, with `hyper` on top.
	Config map[string]any `yaml:"-"`
	// File is the path of the model spec, or of the file or folder it was derived from.
	File string `yaml:"-"`
	// Pulled reports whether ModelDir is the folder that Options.Pulled returned.
	Pulled bool `yaml:"-"`
	// Overrides from the command line, already applied to the fields above.
	Options Options `yaml:"-"`

	set        positions
	configFile map[string]any // Config before hyper and family
	network    *yaml.Node     // network_structure of the model spec; nil: none
	unread     []unreadTensors
}

// positions maps keys such as "network_structure.rope_theta" to their positions.
type positions map[string]Pos

// Set reports whether the model spec itself (not a default) sets the key.
func (s *Spec) Set(key string) bool { _, ok := s.set[key]; return ok }

// Pos returns the position of a key, or that of the file if the key is not set.
func (s *Spec) Pos(key string) Pos {
	if p, ok := s.set[key]; ok {
		return p
	}
	return Pos{File: s.File}
}

// An OrderedMap is a mapping of strings that preserves order.
type OrderedMap []Entry

// An Entry is one pair of an OrderedMap.
type Entry struct {
	Key, Val string
	Prefix   string // prefix of the stored names; Key may omit it
	Pos      Pos
}
