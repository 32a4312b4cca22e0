package spec

import "github.com/iflowc/iflowc/ir/tensor"

// Version is the specification language's version: `iflow: 1`.
const Version = 1

// Options are what the command line adds to a specification.
type Options struct {
	ModelDir   string // folder of the model's files; "" means the specification's
	Quant      string // weight type for all tensors; "f32" implies f32 activations and KV
	KV         string // KV cache type
	Devices    string // device string
	MaxContext int    // positions; 0 means the specification's

	// Pulled finds the folder of a hub repository on this machine, for specs
	// that name one and lie in no folder with their files; nil finds none.
	Pulled func(repository string) (dir string, ok bool)
}

// A Spec is a specification as written or derived, with config.json (or the
// file's metadata) beside it. Keys are those of Inferflow's model_spec.json
// and engine configuration, and ours.
type Spec struct {
	Version  int    `yaml:"iflow"`
	Name     string `yaml:"name"`
	Family   string `yaml:"family"` // which models/families file gives the defaults; "" means by config.json
	ModelDir string `yaml:"model_dir"`

	Repository string `yaml:"repository"` // hub repository of the model's files, OWNER/NAME, for iflowc pull
	Parameters int    `yaml:"parameters"` // number of parameters, shown in lists

	ConfigFile      string   `yaml:"config_file"`
	ModelFiles      []string `yaml:"model_files"`
	ModelFileFormat string   `yaml:"model_file_format" words:"std|pickle|safetensors|ggml|gguf|llama2.c"`

	VocabSize       int `yaml:"vocab_size"`
	InputVocabSize  int `yaml:"input_vocab_size"`
	PaddedVocabSize int `yaml:"padded_vocab_size"` // rows of the embedding matrix, when more than the vocabulary
	OutputVocabSize int `yaml:"output_vocab_size"`

	UnkToken string `yaml:"unk_token"`
	PadToken string `yaml:"pad_token"`
	BosToken string `yaml:"bos_token"`
	EosToken string `yaml:"eos_token"`

	TokenizerFile         string   `yaml:"tokenizer_file"`
	TokenizerFiles        []string `yaml:"tokenizer_files"`
	TokenBytesMapping     int      `yaml:"token_bytes_mapping"`
	TokenRemapFile        string   `yaml:"token_remap_file"`
	TokenizationAlgorithm string   `yaml:"tokenization_algorithm" words:"fmm|fmm2|bpe|ulm|std|auto"`
	GenerationConfig      string   `yaml:"generation_config"`

	Hyper   map[string]any `yaml:"hyper"` // hyper-parameters by their config.json names; over config.json
	Network Network        `yaml:"network_structure"`
	Graph   string         `yaml:"graph"`          // IR in place of what network_structure gives; see graph.go
	Ignore  []string       `yaml:"ignore_tensors"` // stored tensors that are no part of the model

	Quant                tensor.DType `yaml:"quant"`
	Types                OrderedMap   `yaml:"types"` // standard tensor name pattern → type
	KVType               tensor.DType `yaml:"kv_type"`
	Activations          string       `yaml:"activations"`            // f32, bf16, int8 or int8+N; see the flag --activations
	Importance           string       `yaml:"importance"`             // importance matrix, a file of model_dir; see calibrate
	TensorQuantThreshold int          `yaml:"tensor_quant_threshold"` // elements; smaller tensors stay as stored
	DeltaTensorRatio     float64      `yaml:"delta_tensor_ratio"`
	Devices              string       `yaml:"devices"`
	PromptTemplate       string       `yaml:"prompt_template"` // in the brace language, a built-in template's name, or Jinja
	ChatTemplate         string       `yaml:"chat_template"`   // the same; over prompt_template
	EncoderInputTemplate string       `yaml:"encoder_input_template"`
	DecoderInputTemplate string       `yaml:"decoder_input_template"` // Inferflow's other name of prompt_template
	DecodingStrategy     any          `yaml:"decoding_strategy"`      // a name, or a map with name and parameters
	MaxContextLen        int          `yaml:"max_context_len"`
	Engine               Engine       `yaml:"engine"` // how the model is run
	Medusa               Medusa       `yaml:"medusa"` // heads that propose tokens

	Comments any `yaml:"COMMENTS"`   // tolerated, as Inferflow does
	TopQKV   any `yaml:"qkv_format"` // two of Inferflow's files have it here, where it means nothing

	// Config is config.json, or the metadata of a GGUF or llama2.c file under
	// config.json's names, with `hyper` on top.
	Config map[string]any `yaml:"-"`
	// File is where the specification was read, or what it was derived from.
	File string `yaml:"-"`
	// Pulled says that ModelDir is the repository's folder as Options.Pulled found it.
	Pulled bool `yaml:"-"`
	// Overrides from the command line, already applied to the fields above.
	Options Options `yaml:"-"`

	set        positions
	configFile map[string]any // Config before hyper and family
}

// positions says where each key was given: "network_structure.rope_theta".
type positions map[string]Pos

// Set says whether the specification (not its defaults) gives the key.
func (s *Spec) Set(key string) bool { _, ok := s.set[key]; return ok }

// Pos is where the key was given; a key not given has the file's position.
func (s *Spec) Pos(key string) Pos {
	if p, ok := s.set[key]; ok {
		return p
	}
	return Pos{File: s.File}
}

// An OrderedMap is a mapping of strings whose order matters.
type OrderedMap []Entry

// An Entry is one pair of an OrderedMap.
type Entry struct {
	Key, Val string
	Prefix   string // of the stored names this entry is about; Key may stand without it
	Pos      Pos
}
