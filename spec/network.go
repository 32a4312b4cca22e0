package spec

// A Network is the network_structure of a specification: one field per atomic
// module choice. The keys up to TensorNamePreMapping are Inferflow's, with
// their meaning; the rest are what today's families need besides.
type Network struct {
	Type                  string `yaml:"type" words:"decoder_only|encoder_only|encoder_decoder|decoder_only.sparse_moe|general|transformer|bert|llama|bloom"`
	NormalizationFunction string `yaml:"normalization_function" words:"std|rms|linear"`
	ActivationFunction    string `yaml:"activation_function" words:"sigmoid|elu|relu|gelu|silu|glu_sigmoid|glu_elu|glu_relu|glu_gelu|glu_silu|gelu_erf|quick_gelu|relu2|tanh|identity|glu_gelu_erf|glu_quick_gelu|glu_relu2|xielu"`
	PositionEmbedding     string `yaml:"position_embedding" words:"empty|rope|alibi|sinusoidal|sinusoidal2|relative_bias"`
	PosEmbeddingOffset    int    `yaml:"pos_embedding_offset"`

	QKColumnOrder       int     `yaml:"qk_column_order"` // 0, 1: rope turns neighbors; 2: halves
	RopeTheta           float64 `yaml:"rope_theta"`
	RopeDim             int     `yaml:"rope_dim"` // rotated channels of a head; -1 and 0 mean all
	PartialRotaryFactor float64 `yaml:"partial_rotary_factor"`

	QKVFormat                int     `yaml:"qkv_format"` // 0: fused rows grouped by KV head; 1: all Q, all K, all V; 2: four blocks of Q, V, K (CodeGen)
	KQScale                  float64 `yaml:"kq_scale"`   // an overflow guard; neutral
	NormalizeLMHead          bool    `yaml:"normalize_lm_head"`
	HasEmbeddingLinearNorm   bool    `yaml:"has_embedding_linear_norm"`
	EmbeddingLinearScale     float64 `yaml:"embedding_linear_scale"` // up to 1e-4: √dim
	LinearNormBeforeSinusoid bool    `yaml:"linear_norm_before_sinusoidal"`
	UseSelfAttnPreNorm       bool    `yaml:"use_self_attn_pre_norm"`
	IsAttnPostAsResidual     bool    `yaml:"is_attn_post_as_residual"`
	IsParallelAttn           bool    `yaml:"is_parallel_attn"`
	MLPAttnShareInput        bool    `yaml:"mlp_attn_share_input"`
	AttnPreNormBase          float64 `yaml:"attn_pre_norm_base"`
	FFNPreNormBase           float64 `yaml:"ffn_pre_norm_base"`
	OutputNormBase           float64 `yaml:"output_norm_base"`
	AttnOutScale             float64 `yaml:"attn_out_scale"`
	FFNOutScale              float64 `yaml:"ffn_out_scale"`
	OutScale                 float64 `yaml:"out_scale"`
	ExpertCount              int     `yaml:"expert_count"`
	UsingExpertCount         int     `yaml:"using_expert_count"`
	MoETopK                  int     `yaml:"moe_top_k"`
	MoENormTopKProb          bool    `yaml:"moe_norm_top_k_prob"`
	MoELayerStart            int     `yaml:"moe_layer_start"`
	MoELayerEnd              int     `yaml:"moe_layer_end"`
	HasSharedExpert          bool    `yaml:"has_shared_expert"`
	TransformQK              bool    `yaml:"transform_qk"`
	MaskToken                string  `yaml:"mask_token"`
	HasCrossAttnKVCache      bool    `yaml:"has_cross_attn_kv_cache"`
	IsEagerDeviceBuilding    bool    `yaml:"is_eager_device_building"`

	TensorNamePrefix     string     `yaml:"tensor_name_prefix"`
	TensorNameMapping    OrderedMap `yaml:"tensor_name_mapping"`
	TensorNamePreMapping OrderedMap `yaml:"tensor_name_pre_mapping"`
	UnevenTensors        []string   `yaml:"uneven_tensors"` // tensors of a layer (self_attn.wo.bias) that only some layers have

	// Norms.
	NormEps        float64 `yaml:"norm_eps"`
	NormParameters bool    `yaml:"norm_parameters"`                     // false: norms without weight and bias (OLMo)
	SubNormBase    float64 `yaml:"sub_norm_base"`                       // (w + base) of the norms on sub-layer outputs (Gemma 2: 1)
	QKNorm         string  `yaml:"qk_norm" words:"auto|none|head|full"` // auto: by the tensors' shapes
	QKNormFunction string  `yaml:"qk_norm_function" words:"std|rms|l2"` // "": as normalization_function
	QKNormBase     float64 `yaml:"qk_norm_base"`
	QKNormPosition string  `yaml:"qk_norm_position" words:"before_rope|after_rope"`
	ResidualNormed bool    `yaml:"residual_from_pre_norm"` // the residual is the pre-normed value (BLOOM's post-norm switch)

	// Positions.
	RopeScaling       *RopeScaling `yaml:"rope_scaling"`
	RopeFactorsTensor string       `yaml:"rope_factors_tensor"`                         // a stored tensor of divisors of the frequencies, where the files have it (GGUF)
	RopeLocalTheta    float64      `yaml:"rope_local_theta"`                            // of sliding layers, unscaled (Gemma 3)
	RopePattern       []string     `yaml:"rope_pattern" words:"rope|none|sliding|full"` // per layer, repeated: sliding means rope, full none (SmolLM3, Cohere 2)
	RopeOffset        int          `yaml:"rope_offset"`                                 // first rotated channel of a head
	AlibiSlopeScale   float64      `yaml:"alibi_slope_scale"`                           // Falcon scales its ALiBi by 1/√head_dim

	// Attention.
	HeadDim          int      `yaml:"head_dim"`
	AttnScale        float64  `yaml:"attn_scale"` // 0: 1/√head_dim
	AttnSoftcap      float64  `yaml:"attn_softcap"`
	SlidingWindow    int      `yaml:"sliding_window"`
	AttentionPattern []string `yaml:"attention_pattern" words:"full|sliding"` // per layer, repeated; empty: all sliding where there is a window
	WindowLayerStart int      `yaml:"window_layer_start"`                     // first layer with a window (Qwen2)
	QKVClamp         float64  `yaml:"qkv_clamp"`                              // clip q, k, v to ±value (OLMo, MPT); 0: none
	AttentionSinks   bool     `yaml:"attention_sinks"`
	FullAttnStep     int      `yaml:"full_attention_step"` // every so many layers, from layer 0 on, one without a window (ModernBERT); 0: see attention_pattern
	LatentAttention  bool     `yaml:"latent_attention"`    // keys and values from a common low-rank projection (DeepSeek-V2, §2.1)
	QKNopeHeadDim    int      `yaml:"qk_nope_head_dim"`    // of latent attention: channels of a head that rope leaves alone
	QKRopeHeadDim    int      `yaml:"qk_rope_head_dim"`    // of latent attention: channels of a head that rope turns
	VHeadDim         int      `yaml:"v_head_dim"`          // channels of a value head; 0: as head_dim
	KVLoraRank       int      `yaml:"kv_lora_rank"`        // width of the low-rank projection
	LatentNormEps    float64  `yaml:"latent_norm_eps"`     // of the norms inside latent attention; 0: norm_eps
	AttnScaleYarn    bool     `yaml:"attn_scale_yarn"`     // scores times the square of YaRN's factor for mscale_all_dim (DeepSeek-V3)
	AttnInverseLayer bool     `yaml:"attn_scale_by_inverse_layer"`
	SkipFirstPreNorm bool     `yaml:"skip_first_pre_norm"` // layer 0 has no norm in front of attention (ModernBERT)
	RelMaxDistance   int      `yaml:"relative_max_distance"`

	// Layers that share weights (Lan et al. 2020, ALBERT, §3.1).
	WeightGroups      int `yaml:"weight_groups"`       // layer L of N reads the weights of group int(L / (N / weight_groups)); 0: each layer its own
	WeightGroupLayers int `yaml:"weight_group_layers"` // layers that a group stores; they run in sequence in the place of each layer

	// Mixtures of experts.
	MoEScore       string  `yaml:"moe_score" words:"softmax|sigmoid|softmax_topk|sparsemixer"`
	MoEScale       float64 `yaml:"moe_scale"` // factor on the routed weights
	MoEGroups      int     `yaml:"moe_groups"`
	MoETopGroups   int     `yaml:"moe_top_groups"`
	MoEGroupScore  string  `yaml:"moe_group_score" words:"max|top2"`
	MoELayerStep   int     `yaml:"moe_layer_step"`                          // experts in every so many layers, the last of each run
	MoEDenseLayers []int   `yaml:"moe_dense_layers"`                        // layers without experts besides
	MoEActivation  string  `yaml:"moe_activation" words:"swiglu_oai"`       // "": as activation_function
	MoELayout      string  `yaml:"moe_weight_layout" words:"out_in|in_out"` // of tensors that hold all experts
	MoEGateUp      string  `yaml:"moe_gate_up" words:"halves|interleaved"`  // rows of gate and up stored as one
	MoEJitter      float64 `yaml:"moe_jitter"`                              // of sparsemixer: half the relative distance of what is near
	MoELimit       float64 `yaml:"moe_limit"`                               // bound of swiglu_oai

	// Encoders.
	PoolerActivation string `yaml:"pooler_activation" words:"tanh|relu|gelu|gelu_erf|silu"`
	HeadActivation   string `yaml:"head_activation" words:"tanh|relu|gelu|gelu_erf|silu"` // of the masked-LM head; "": as activation_function
	ClassPooling     string `yaml:"classifier_pooling" words:"first|mean"`                // which state a classifier reads
	SharedEmbeddings bool   `yaml:"shared_embeddings"`                                    // encoder and decoder embed by one table

	// Projections and head.
	WeightLayout   string  `yaml:"weight_layout" words:"out_in|in_out"` // in_out: Conv1D (GPT-2)
	TiedEmbeddings bool    `yaml:"tied_embeddings"`
	LogitScale     float64 `yaml:"logit_scale"`
	LogitSoftcap   float64 `yaml:"logit_softcap"`
}

// A RopeScaling is config.json's rope_scaling, whose names it keeps.
type RopeScaling struct {
	Type          string    `yaml:"type"`
	RopeType      string    `yaml:"rope_type" words:"default|linear|dynamic|yarn|llama3|longrope|su|none"`
	Factor        float64   `yaml:"factor"`
	Alpha         float64   `yaml:"alpha"` // of dynamic: a constant factor on the base instead (Hunyuan)
	Original      float64   `yaml:"original_max_position_embeddings"`
	LowFreq       float64   `yaml:"low_freq_factor"`
	HighFreq      float64   `yaml:"high_freq_factor"`
	AttnFactor    float64   `yaml:"attention_factor"`
	BetaFast      float64   `yaml:"beta_fast"`
	BetaSlow      float64   `yaml:"beta_slow"`
	MScale        float64   `yaml:"mscale"`
	MScaleAllDim  float64   `yaml:"mscale_all_dim"`
	Truncate      *bool     `yaml:"truncate"`
	ShortFactor   []float64 `yaml:"short_factor"`
	LongFactor    []float64 `yaml:"long_factor"`
	ShortMScale   float64   `yaml:"short_mscale"`
	LongMScale    float64   `yaml:"long_mscale"`
	RopeTheta     float64   `yaml:"rope_theta"`
	PartialRotary float64   `yaml:"partial_rotary_factor"`
	MaxPos        float64   `yaml:"max_position_embeddings"`
}

// newNetwork has the defaults of the keys.
func newNetwork() Network {
	return Network{
		RopeTheta: 10000, PartialRotaryFactor: 1, KQScale: 1,
		LinearNormBeforeSinusoid: true, UseSelfAttnPreNorm: true, IsAttnPostAsResidual: true,
		AttnOutScale: 1, FFNOutScale: 1, OutScale: 1,
		MoENormTopKProb: true, MoELayerEnd: -1, HasCrossAttnKVCache: true,
		NormEps: 1e-5, NormParameters: true, QKNorm: "auto", QKNormPosition: "before_rope",
		AlibiSlopeScale: 1, WeightGroupLayers: 1, WeightLayout: "out_in", LogitScale: 1,
		MoEScore: "softmax", MoEScale: 1, MoEGroupScore: "max", MoELayerStep: 1, MoELayout: "out_in", MoEGateUp: "halves", MoELimit: 7, MoEJitter: 0.01,
		RelMaxDistance: 128, PoolerActivation: "tanh", ClassPooling: "first", SharedEmbeddings: true,
	}
}

// typeShortNames are the long names of network types and their short forms.
var typeShortNames = map[string]string{
	"transformer.encoder_decoder":         "encoder_decoder",
	"transformer.encoder_only":            "encoder_only",
	"transformer.decoder_only":            "decoder_only",
	"transformer.decoder_only.sparse_moe": "decoder_only.sparse_moe",
	"transformer.llama":                   "llama",
	"transformer.bloom":                   "bloom",
}

// A preset is what a network type implies of modules.
type preset struct{ topology, norm, act, pos string }

var presets = map[string]preset{
	"llama":       {"decoder_only", "rms", "silu", "rope"},
	"bloom":       {"decoder_only", "std", "gelu", "alibi"},
	"bert":        {"encoder_only", "", "", ""},
	"general":     {"decoder_only", "", "", ""},
	"transformer": {"decoder_only", "", "", ""},
}

// Topology is the network type without presets: decoder_only, encoder_only,
// encoder_decoder or decoder_only.sparse_moe.
func (n *Network) Topology() string {
	if p, ok := presets[n.Type]; ok {
		return p.topology
	}
	return n.Type
}

// encodes and decodes say which stacks of layers the network has.
func (n *Network) encodes() bool {
	return n.Topology() == "encoder_only" || n.Topology() == "encoder_decoder"
}
func (n *Network) decodes() bool { return n.Topology() != "encoder_only" }
