package spec

// A Network is the network_structure of a model spec: one field per choice of an
// atomic module. The keys up to TensorNamePreMapping are Inferflow's, with the
// same meaning. The others describe later model families.
type Network struct {
	Type                  string `yaml:"type" words:"decoder_only|encoder_only|encoder_decoder|decoder_only.sparse_moe|general|transformer|bert|llama|bloom"`                                                                       // topology of the network; transformer.X is the same as X, general and transformer are decoder_only, and bert is encoder_only; llama and bloom are decoder_only and preset norm, activation and positions
	NormalizationFunction string `yaml:"normalization_function" words:"std|rms|linear"`                                                                                                                                             // std: LayerNorm; rms: RMSNorm; linear: multiplication by √hidden_size, without parameters
	ActivationFunction    string `yaml:"activation_function" words:"sigmoid|elu|relu|gelu|silu|glu_sigmoid|glu_elu|glu_relu|glu_gelu|glu_silu|gelu_erf|quick_gelu|relu2|tanh|identity|glu_gelu_erf|glu_quick_gelu|glu_relu2|xielu"` // activation of the FFN; gelu is the tanh approximation; a glu_ name means that w1 stores gate and up in one matrix
	PositionEmbedding     string `yaml:"position_embedding" words:"empty|rope|alibi|sinusoidal|sinusoidal2|relative_bias|disentangled"`                                                                                             // position encoding; empty: a learned table if the files have one; alibi: in an encoder, by the distance to either side; relative_bias: T5's relative position biases; disentangled: products of content with the embeddings of relative positions (DeBERTa)
	PosEmbeddingOffset    int    `yaml:"pos_embedding_offset"`                                                                                                                                                                      // number added to the positions that index the position table or the sinusoid (OPT: 2)

	QKColumnOrder       int     `yaml:"qk_column_order"`       // pairs of channels that rope rotates; 0, 1: neighbors; 2: channel i and i + half
	RopeTheta           float64 `yaml:"rope_theta"`            // base of rope's frequencies
	RopeDim             int     `yaml:"rope_dim"`              // rotated channels of a head; 0, -1: all, times partial_rotary_factor
	PartialRotaryFactor float64 `yaml:"partial_rotary_factor"` // fraction of a head's channels that rope rotates, if rope_dim does not set their number

	QKVFormat                int     `yaml:"qkv_format"`                    // order of rows in a fused Q, K, V matrix; 0: grouped by KV head; 1: all Q, all K, all V; 2: four blocks of Q, V, K (CodeGen)
	KQScale                  float64 `yaml:"kq_scale"`                      // accepted and ignored: Inferflow's guard against fp16 overflow, which leaves the result unchanged
	NormalizeLMHead          bool    `yaml:"normalize_lm_head"`             // scale each row of the output matrix to unit length (Baichuan 2)
	HasEmbeddingLinearNorm   bool    `yaml:"has_embedding_linear_norm"`     // multiply the token embeddings by embedding_linear_scale
	EmbeddingLinearScale     float64 `yaml:"embedding_linear_scale"`        // factor on the token embeddings; up to 1e-4: √hidden_size
	LinearNormBeforeSinusoid bool    `yaml:"linear_norm_before_sinusoidal"` // multiply the token embeddings before positions are added, not after
	UseSelfAttnPreNorm       bool    `yaml:"use_self_attn_pre_norm"`        // apply a norm before self-attention
	IsAttnPostAsResidual     bool    `yaml:"is_attn_post_as_residual"`      // use the output of the norm after attention as the residual, not only as the FFN's input
	IsParallelAttn           bool    `yaml:"is_parallel_attn"`              // attention and FFN read the same normed input in parallel (GPT-J, Phi-2)
	MLPAttnShareInput        bool    `yaml:"mlp_attn_share_input"`          // attention and FFN run in parallel and read the layer's input through norms of their own (GPT-NeoX)
	AttnPreNormBase          float64 `yaml:"attn_pre_norm_base"`            // number added to the weight of the norm before attention (Gemma: 1)
	FFNPreNormBase           float64 `yaml:"ffn_pre_norm_base"`             // number added to the weight of the norm before the FFN (Gemma: 1)
	OutputNormBase           float64 `yaml:"output_norm_base"`              // number added to the weight of the final norm (Gemma: 1)
	AttnOutScale             float64 `yaml:"attn_out_scale"`                // factor on the output of attention, before the residual addition (MiniCPM, Granite)
	FFNOutScale              float64 `yaml:"ffn_out_scale"`                 // factor on the output of the FFN, before the residual addition (MiniCPM, Granite)
	OutScale                 float64 `yaml:"out_scale"`                     // factor on the last layer's output, before the final norm
	ExpertCount              int     `yaml:"expert_count"`                  // experts of a layer; 0: no mixture of experts
	UsingExpertCount         int     `yaml:"using_expert_count"`            // number of experts to route over, counted from the first; 0: all
	MoETopK                  int     `yaml:"moe_top_k"`                     // experts that a token is routed to
	MoENormTopKProb          bool    `yaml:"moe_norm_top_k_prob"`           // divide the weights of the chosen experts by their sum
	MoELayerStart            int     `yaml:"moe_layer_start"`               // first layer with experts
	MoELayerEnd              int     `yaml:"moe_layer_end"`                 // first layer after those with experts; negative: all later layers have experts
	HasSharedExpert          bool    `yaml:"has_shared_expert"`             // each layer with experts has a shared expert, which processes every token
	TransformQK              bool    `yaml:"transform_qk"`                  // accepted only as false; Inferflow declares the key and does not read it
	MaskToken                string  `yaml:"mask_token"`                    // accepted and ignored; Inferflow declares the key and does not read it
	HasCrossAttnKVCache      bool    `yaml:"has_cross_attn_kv_cache"`       // accepted and ignored; Inferflow declares the key and does not read it
	IsEagerDeviceBuilding    bool    `yaml:"is_eager_device_building"`      // accepted and ignored; Inferflow declares the key and does not read it

	TensorNamePrefix     string     `yaml:"tensor_name_prefix"`      // optional prefix of tensor names in the checkpoint, or several separated by |; tensor_name_mapping omits it
	TensorNameMapping    OrderedMap `yaml:"tensor_name_mapping"`     // tensor name in the checkpoint → standard name; {i} is the layer, {j} the expert; added to the built-in names
	AttentionTensorNames OrderedMap `yaml:"attention_tensor_names"`  // entries like those of tensor_name_mapping that hold in layers with attention, before it
	TensorNamePreMapping OrderedMap `yaml:"tensor_name_pre_mapping"` // stored name → name that tensor_name_mapping matches, for single tensors
	UnevenTensors        []string   `yaml:"uneven_tensors"`          // tensors of a layer, such as self_attn.wo.bias, that only some layers have

	// Norms.
	NormEps        float64 `yaml:"norm_eps"`                                        // ε of the norms
	NormParameters bool    `yaml:"norm_parameters"`                                 // norms have a weight and perhaps a bias; false: they have neither (OLMo)
	SubNormBase    float64 `yaml:"sub_norm_base"`                                   // number added to the weights of the norms on the outputs of attention and FFN (Gemma 2: 1)
	QKNorm         string  `yaml:"qk_norm" words:"auto|none|head|full|rope_layers"` // norm on queries and keys; rope_layers: per head, without weights, in the layers with rope (Llama 4); head: per head, with a shared weight or one per head; full: over all heads together; auto: by the tensors' shapes
	QKNormFunction string  `yaml:"qk_norm_function" words:"std|rms|l2"`             // function of the norm on queries and keys; default: normalization_function
	QKNormBase     float64 `yaml:"qk_norm_base"`                                    // number added to the weights of the norms on queries and keys (Gemma 3: 1)
	QKNormPosition string  `yaml:"qk_norm_position" words:"before_rope|after_rope"` // whether the norm on queries and keys is applied before or after rope
	ResidualNormed bool    `yaml:"residual_from_pre_norm"`                          // the residual is the output of the pre-norm (BLOOM's apply_residual_connection_post_layernorm)

	// Positions.
	RopeScaling       *RopeScaling `yaml:"rope_scaling"`                                // scaling of rope's frequencies for long contexts, as in config.json
	RopeFactorsTensor string       `yaml:"rope_factors_tensor"`                         // stored tensor with a divisor for each of rope's frequencies (GGUF's rope_freqs.weight)
	RopeLongTensors   []string     `yaml:"rope_long_tensors"`                           // stored tensors with the short_factor and long_factor of longrope; without them nothing is scaled by it
	RopeLocalTheta    float64      `yaml:"rope_local_theta"`                            // base of rope's frequencies on layers with a sliding window (Gemma 3); 0: rope_theta
	RopeLocalScaling  *RopeScaling `yaml:"rope_local_scaling"`                          // with rope_local_theta: scaling of these frequencies; default: none
	RopePattern       []string     `yaml:"rope_pattern" words:"rope|none|sliding|full"` // rope of each layer, repeated; rope, sliding: with rope; none, full: without (SmolLM3, Cohere 2)
	MRopeSection      []int        `yaml:"mrope_section"`                               // multi-axis rope: how many of the frequencies turn by the position in time, by that in height and by that in width; they add up to half of the rotated channels. All positions of a token of text are equal, so this changes no result (Wang et al. 2024, §2.1)
	MRopeInterleaved  bool         `yaml:"mrope_interleaved"`                           // the axes alternate over the frequencies, and mrope_section need not add up (Qwen3-VL)
	RopeOffset        int          `yaml:"rope_offset"`                                 // first rotated channel of a head
	AlibiSlopeScale   float64      `yaml:"alibi_slope_scale"`                           // factor on ALiBi's slopes (Falcon: 1/√head_dim)

	// Attention.
	HeadDim          int      `yaml:"head_dim"`                                       // channels of a query or key head; default: hidden_size / num_attention_heads
	AttnScale        float64  `yaml:"attn_scale"`                                     // factor on attention scores; 0: 1/√head_dim
	AttnSoftcap      float64  `yaml:"attn_softcap"`                                   // bound c on attention scores s, c·tanh(s/c) (Gemma 2: 50); 0: none
	SlidingWindow    int      `yaml:"sliding_window"`                                 // tokens that a token attends to, its own included; in an encoder, the distance to either side; 0: all
	AttentionPattern []string `yaml:"attention_pattern" words:"full|sliding|chunked"` // attention of each layer, repeated; sliding: with sliding_window; chunked: within chunks of attention_chunk positions; default: sliding_window applies to all layers
	AttentionChunk   int      `yaml:"attention_chunk"`                                // positions of a chunk, of which a token attends to its own up to itself (Llama 4)
	TemperatureFloor int      `yaml:"temperature_floor"`                              // in layers without rope, queries are multiplied by 1 + temperature_scale · log(1 + ⌊(position + 1) / temperature_floor⌋) (Llama 4); 0: not
	TemperatureScale float64  `yaml:"temperature_scale"`                              // see temperature_floor
	TemperatureRope  bool     `yaml:"temperature_rope"`                               // queries of layers with rope too are multiplied, behind it, and positions are counted from 0 (Ministral 3)
	SlidingWindows   []int    `yaml:"sliding_windows"`                                // the window of each layer, repeated, in place of sliding_window (Longformer)
	GlobalTokens     int      `yaml:"global_tokens"`                                  // in an encoder with windows: the first tokens, which see all tokens, by projections of their own, and are seen by all (Longformer)
	WindowLayerStart int      `yaml:"window_layer_start"`                             // first layer with a sliding window (Qwen2)
	QKVClamp         float64  `yaml:"qkv_clamp"`                                      // bound on queries, keys and values, which are clipped to ±value (OLMo, MPT); 0: none
	AttentionSinks   bool     `yaml:"attention_sinks"`                                // each head adds a learned score to the softmax's denominator (gpt-oss)
	FullAttnStep     int      `yaml:"full_attention_step"`                            // period of layers without a sliding window, starting with layer 0 (ModernBERT); 0: attention_pattern applies
	LatentAttention  bool     `yaml:"latent_attention"`                               // multi-head latent attention: keys and values are projected from a shared low-rank vector (DeepSeek-V2, §2.1)
	QKNopeHeadDim    int      `yaml:"qk_nope_head_dim"`                               // with latent_attention: channels of a query or key head without rope
	QKRopeHeadDim    int      `yaml:"qk_rope_head_dim"`                               // with latent_attention: channels of a query or key head with rope
	VHeadDim         int      `yaml:"v_head_dim"`                                     // channels of a value head; 0: head_dim
	KVLoraRank       int      `yaml:"kv_lora_rank"`                                   // with latent_attention: width of the low-rank projection
	LatentQueryScale float64  `yaml:"latent_query_scale"`                             // with latent_attention: factor on the queries (LongCat)
	LatentKVScale    float64  `yaml:"latent_kv_scale"`                                // with latent_attention: factor on the normed low-rank vector of keys and values (LongCat)
	Differential     bool     `yaml:"differential_attention"`                         // the difference of two attentions, on half of the heads each; the second is multiplied by λ = exp(λq1·λk1) − exp(λq2·λk2) + λinit, with λinit = 0.8 − 0.6·exp(−0.3·layer) (Ye et al. 2024, §2.1)
	LatentNormEps    float64  `yaml:"latent_norm_eps"`                                // with latent_attention: ε of the norms on low-rank vectors; 0: norm_eps
	AttnScaleYarn    bool     `yaml:"attn_scale_yarn"`                                // multiply attention scores by (0.1·mscale_all_dim·ln(factor) + 1)², with the values of rope_scaling (DeepSeek-V3)
	AttnInverseLayer bool     `yaml:"attn_scale_by_inverse_layer"`                    // divide the attention scores of layer i, counted from 0, by i + 1 (GPT-2)
	SkipFirstPreNorm bool     `yaml:"skip_first_pre_norm"`                            // layer 0 has no norm before attention (ModernBERT)
	RelMaxDistance   int      `yaml:"relative_max_distance"`                          // with relative_bias: minimum distance of the last bucket (T5); with disentangled: that of the last position
	RelSpacing       string   `yaml:"relative_spacing" words:"linear|log"`            // with disentangled: positions for all distances, or, beyond a quarter of them, logarithmically fewer
	PosAttention     []string `yaml:"position_attention" words:"c2p|p2c|p2p"`         // with disentangled: products of content with positions (c2p) and of positions with content (p2c); p2p only counts in the scale

	HeadDims  []int    `yaml:"head_dims"`                                // channels of a head in each layer, repeated; default: head_dim (Gemma 4)
	KVHeads   []int    `yaml:"kv_heads"`                                 // KV heads of each layer, repeated; default: num_key_value_heads (Gemma 4)
	KVPattern []string `yaml:"kv_pattern" words:"own|key|shared|stored"` // keys and values of each layer, repeated; own: a projection of each; key: the keys are the values as well (Gemma 4); shared: those of the last earlier layer of the same kind, sliding or full (Gemma 3n). stored: key if the files have no value projection, else own
	ValueNorm string   `yaml:"value_norm" words:"none|rms"`              // norm on each value head, without parameters (Gemma 3n)

	AttnGate    string  `yaml:"attn_gate" words:"none|query|own"` // gate on the output of attention, a sigmoid; query: each head of wq stores its query, then its gate; own: a matrix wg, with one row per channel or per head
	AttnInScale float64 `yaml:"attn_in_scale"`                    // factor on the input of attention (Falcon H1)
	KeyScale    float64 `yaml:"key_scale"`                        // factor on the keys (Falcon H1)

	SharedKV    bool        `yaml:"shared_key_value"` // one KV head whose keys are also the values, with low-rank queries, a rotation back of the output, and out_groups (DeepSeek-V4)
	OutGroups   int         `yaml:"out_groups"`       // with shared_key_value: groups of heads that the first output projection projects alone
	Compression Compression `yaml:"compression"`      // with shared_key_value: attention to compressed rows as well
	Streams     Streams     `yaml:"streams"`          // hyper-connections: several residual streams (DeepSeek-V4)
	GLULimit    float64     `yaml:"glu_limit"`        // in experts: bound L of the gate, min(g, L), and of the values that it multiplies, ±L (DeepSeek-V4); 0: none

	Indexer Indexer `yaml:"indexer"` // sparse attention: a token attends to the rows that an indexer chooses (DeepSeek-V3.2)

	// Token mixers.
	MixerPattern  []string        `yaml:"mixer_pattern" words:"full|sliding|linear|selective_scan|ssd|short_conv|rg_lru|time_mix|none"` // token mixer of each layer, repeated; full, sliding: attention, without or with sliding_window; none: the layer is only an FFN; default: attention
	ParallelMixer string          `yaml:"parallel_mixer" words:"linear|selective_scan|ssd|short_conv|rg_lru"`                           // mixer that reads the same input as attention, in the layers with attention; its output is added (Falcon H1)
	FFNPattern    []string        `yaml:"ffn_pattern" words:"dense|experts|both|stored|none"`                                           // FFN of each layer, repeated; both: an FFN and experts, whose outputs are added (Gemma 4); stored: experts if the files have a router for the layer; none: the layer is only a token mixer; default: by moe_layer_start, moe_layer_step and moe_dense_layers
	FFNSizes      []int           `yaml:"ffn_sizes"`                                                                                    // width of each layer's FFN, repeated; default: intermediate_size
	AttnResidual  float64         `yaml:"attn_residual_scale"`                                                                          // factor on the residual that the output of attention is added to (MiniMax)
	FFNResidual   float64         `yaml:"ffn_residual_scale"`                                                                           // factor on the residual that the output of the FFN is added to (MiniMax)
	FFNGateScale  float64         `yaml:"ffn_gate_scale"`                                                                               // factor on the gate of the FFN, before its activation (Falcon H1)
	StoredDecay   string          `yaml:"stored_decay" words:"log|rate"`                                                                // what a_log of linear_attention, selective_scan and ssd stores; log: A_log, where the decay's rate is −exp(A_log); rate: that rate (GGUF)
	Linear        LinearAttention `yaml:"linear_attention"`                                                                             // layers with linear attention: Gated DeltaNet, Kimi Delta Attention, lightning attention, retention
	Scan          Scan            `yaml:"selective_scan"`                                                                               // layers with a selective scan (Mamba)
	SSD           SSD             `yaml:"ssd"`                                                                                          // layers with state-space duality (Mamba-2)
	SharedBlock   SharedBlock     `yaml:"shared_block"`                                                                                 // transformer block that several layers share, in front of their token mixers
	TimeMix       TimeMix         `yaml:"time_mix"`                                                                                     // layers with RWKV-7's time mixing
	RGLRU         RGLRU           `yaml:"rg_lru"`                                                                                       // layers with a real-gated linear recurrent unit

	LayerParts int `yaml:"layer_parts"` // 2: a layer is two parts of attention and FFN, and experts that read what the first FFN reads and whose output is added at the end (LongCat)

	PerLayer PerLayerEmbeddings `yaml:"per_layer_embeddings"` // an embedding of each token for each layer, which the layer adds to its output through a gate (Gemma 3n)

	AltUp    AltUp     `yaml:"altup"`               // residual streams with alternating updates (Gemma 3n)
	Sparsity []float64 `yaml:"activation_sparsity"` // fraction of each layer's FFN gates that are set to 0, repeated: those below the quantile of a normal distribution with their mean and variance (Gemma 3n)

	// Layers that share weights (Lan et al. 2020, ALBERT, §3.1).
	WeightGroups      int `yaml:"weight_groups"`       // groups of layers that share weights: layer i of N reads group ⌊i / (N / weight_groups)⌋ (ALBERT); 0: no sharing
	WeightGroupLayers int `yaml:"weight_group_layers"` // number of stored layers per group, which run in sequence in place of each layer

	// Mixtures of experts.
	MoEScore       string  `yaml:"moe_score" words:"softmax|sigmoid|sqrtsoftplus|softmax_topk|sparsemixer"` // how router logits become expert weights; softmax_topk: softmax over the chosen experts only; sparsemixer: Phi-3.5-MoE's
	MoEScale       float64 `yaml:"moe_scale"`                                                               // factor on the weights of the chosen experts
	MoEGroups      int     `yaml:"moe_groups"`                                                              // groups of experts, for routing to a few groups (DeepSeek-V2, V3); 0: none
	MoETopGroups   int     `yaml:"moe_top_groups"`                                                          // groups that the experts of a token are chosen from
	MoEGroupScore  string  `yaml:"moe_group_score" words:"max|top2"`                                        // score of a group: its greatest expert score, or the sum of its two greatest (DeepSeek-V3)
	MoELayerStep   int     `yaml:"moe_layer_step"`                                                          // period of layers with experts: layer i has experts if i + 1 is a multiple of it
	MoEDenseLayers []int   `yaml:"moe_dense_layers"`                                                        // layers without experts, in addition to those that moe_layer_start, _end and _step exclude
	MoEActivation  string  `yaml:"moe_activation" words:"swiglu_oai"`                                       // activation of the experts, if not activation_function; swiglu_oai: gpt-oss's clamped SwiGLU
	MoELayout      string  `yaml:"moe_weight_layout" words:"out_in|in_out|down_in_out|by_shape"`            // layout of tensors that store all experts of a layer; in_out: transposed; down_in_out: only the last matrix is transposed (DBRX); by_shape: transposed where hidden_size fits only so (Qwen3-VL)
	MoEGateLayout  string  `yaml:"moe_gate_layout" words:"out_in|by_shape"`                                 // layout of the router's matrix; by_shape: transposed where expert_count fits only so (ERNIE 4.5-VL)
	MoESets        int     `yaml:"moe_sets"`                                                                // sets of expert_count experts, one for each kind of token, with a row each of the correction of the scores; tokens of a text are routed to the first set, and the others are ignored (ERNIE 4.5-VL)
	MoEGateUp      string  `yaml:"moe_gate_up" words:"halves|interleaved"`                                  // rows of gate and up in tensors that store both: first all of gate, or alternating
	MoEJitter      float64 `yaml:"moe_jitter"`                                                              // with sparsemixer: experts compete if the relative difference of their logits is less than 2·moe_jitter
	MoENormPower   int     `yaml:"moe_norm_power"`                                                          // with moe_norm_top_k_prob; 1: divide by the sum of the weights; 2: by the root of the sum of their squares (DBRX)
	MoEZeroExperts int     `yaml:"moe_zero_experts"`                                                        // experts behind the others that return their input (LongCat)
	MoEGateScale   float64 `yaml:"moe_gate_scale"`                                                          // factor on the weights of the norm in front of the router, which then reads the residual stream (Gemma 4)
	MoEScaledInput bool    `yaml:"moe_scaled_input"`                                                        // the weight of an expert multiplies its input, not its output (Llama 4)
	MoELimit       float64 `yaml:"moe_limit"`                                                               // with swiglu_oai: bound of the clamp
	MoEAlpha       float64 `yaml:"moe_alpha"`                                                               // with swiglu_oai: factor in its sigmoid

	// Encoders.
	PoolerActivation string      `yaml:"pooler_activation" words:"tanh|relu|gelu|gelu_erf|silu"`                // activation of the pooler, on the first token's state
	HeadActivation   string      `yaml:"head_activation" words:"tanh|relu|gelu|gelu_erf|silu"`                  // activation of the masked-LM head; default: activation_function
	ClassPooling     string      `yaml:"classifier_pooling" words:"first|mean|late"`                            // input of the classifier: the first token's state, or the mean over the tokens; late: the pooler's output of every token, averaged (EuroBERT)
	EmbeddingPooling string      `yaml:"embedding_pooling" words:"first|last|mean"`                             // with embedding_dense: pooling of a text's hidden states
	EmbeddingDense   []string    `yaml:"embedding_dense" words:"identity|tanh|relu|gelu|gelu_erf|silu|sigmoid"` // activations of the dense layers that compute a text's embedding from the pooled states (sentence-transformers)
	MaskDropout      float64     `yaml:"mask_dropout"`                                                          // fraction of tokens that training masked, by zero embeddings; embeddings are scaled by the fraction that a text masks (ESM); 0: none
	MaskTokenID      int         `yaml:"mask_token_id"`                                                         // with mask_dropout: the mask token
	BareMaskedHead   bool        `yaml:"bare_masked_head"`                                                      // the masked-LM head is the embedding table alone, without tensors of its own
	Convolution      Convolution `yaml:"convolution"`                                                           // convolution of the embeddings, beside the first layer
	SharedEmbeddings bool        `yaml:"shared_embeddings"`                                                     // encoder and decoder use one embedding table

	// Projections and head.
	WeightLayout   string  `yaml:"weight_layout" words:"out_in|in_out"` // layout of stored projections; in_out: transposed, as Conv1D of GPT-2
	TiedEmbeddings bool    `yaml:"tied_embeddings"`                     // the embedding table is also the output matrix
	LogitScale     float64 `yaml:"logit_scale"`                         // factor on the logits (Cohere)
	LogitSoftcap   float64 `yaml:"logit_softcap"`                       // bound c on logits x, c·tanh(x/c) (Gemma 2: 30); 0: none
}

// A RopeScaling is config.json's rope_scaling, with the same key names.
type RopeScaling struct {
	Type          string    `yaml:"type"`                                                                                                // older name of rope_type
	RopeType      string    `yaml:"rope_type" words:"default|mrope|linear|ntk|dynamic|yarn|llama3|longrope|su|xdrope|none|proportional"` // scaling method, as in transformers; default, none, mrope: no scaling; su: older name of longrope; xdrope: that of dynamic in HunYuan-VL; proportional: only the first partial_rotary_factor of the pairs are rotated, with the frequencies that they have among all pairs (Gemma 4)
	Factor        float64   `yaml:"factor"`                                                                                              // factor by which the context is extended
	Alpha         float64   `yaml:"alpha"`                                                                                               // with dynamic: multiply rope_theta once, by alpha^(d/(d−2)) for d rotated channels (Hunyuan)
	Original      float64   `yaml:"original_max_position_embeddings"`                                                                    // context in tokens that the model was trained for before its extension; default: config.json's original_max_position_embeddings, else its max_position_embeddings
	LowFreq       float64   `yaml:"low_freq_factor"`                                                                                     // with llama3: frequencies with fewer rotations in the original context are divided by factor
	HighFreq      float64   `yaml:"high_freq_factor"`                                                                                    // with llama3: frequencies with more rotations in the original context are kept; those between are blended
	AttnFactor    float64   `yaml:"attention_factor"`                                                                                    // with yarn, longrope: factor on cosines and sines; default: by the method's formula
	BetaFast      float64   `yaml:"beta_fast"`                                                                                           // with yarn: minimum number of rotations in the original context for which a frequency is kept; default: 32
	BetaSlow      float64   `yaml:"beta_slow"`                                                                                           // with yarn: maximum number of rotations in the original context for which a frequency is divided by factor; default: 1
	MScale        float64   `yaml:"mscale"`                                                                                              // with yarn and mscale_all_dim: numerator's coefficient in the default of attention_factor (DeepSeek-V2)
	MScaleAllDim  float64   `yaml:"mscale_all_dim"`                                                                                      // with yarn and mscale: denominator's coefficient in the default of attention_factor; see attn_scale_yarn
	Truncate      *bool     `yaml:"truncate"`                                                                                            // with yarn: round the bounds of the blended channels to integers; default: true
	ShortFactor   []float64 `yaml:"short_factor"`                                                                                        // with longrope: divisor of each frequency, for sequences within the original context
	LongFactor    []float64 `yaml:"long_factor"`                                                                                         // with longrope: divisor of each frequency, for longer sequences
	ShortMScale   float64   `yaml:"short_mscale"`                                                                                        // with longrope: factor on cosines and sines within the original context; default: attention_factor
	LongMScale    float64   `yaml:"long_mscale"`                                                                                         // with longrope: factor on cosines and sines of longer sequences; default: attention_factor
	RopeTheta     float64   `yaml:"rope_theta"`                                                                                          // accepted and ignored here: the family copies it to network_structure
	PartialRotary float64   `yaml:"partial_rotary_factor"`                                                                               // with proportional: fraction of the pairs that are rotated; otherwise ignored here: the family copies it to network_structure
	MaxPos        float64   `yaml:"max_position_embeddings"`                                                                             // accepted and ignored
}

// newNetwork returns a Network with the default values of the keys.
func newNetwork() Network {
	return Network{
		RopeTheta: 10000, PartialRotaryFactor: 1, KQScale: 1,
		LinearNormBeforeSinusoid: true, UseSelfAttnPreNorm: true, IsAttnPostAsResidual: true,
		AttnOutScale: 1, FFNOutScale: 1, OutScale: 1,
		MoENormTopKProb: true, MoELayerEnd: -1, HasCrossAttnKVCache: true,
		NormEps: 1e-5, NormParameters: true, QKNorm: "auto", QKNormPosition: "before_rope",
		AlibiSlopeScale: 1, WeightGroupLayers: 1, WeightLayout: "out_in", LogitScale: 1,
		MoEScore: "softmax", MoEScale: 1, MoEGroupScore: "max", MoELayerStep: 1, MoELayout: "out_in", MoEGateLayout: "out_in", MoESets: 1, MoEGateUp: "halves", MoELimit: 7, MoEAlpha: 1.702, MoEJitter: 0.01, MoEGateScale: 1, MoENormPower: 1, LatentQueryScale: 1, LatentKVScale: 1, LayerParts: 1,
		ValueNorm: "none", AttnGate: "none", AttnInScale: 1, KeyScale: 1, AttnResidual: 1, FFNResidual: 1, FFNGateScale: 1, StoredDecay: "log",
		Linear:         LinearAttention{Layout: "blocks", Order: "grouped", Act: "none", QKNorm: "none", Decay: "none", DecayForm: "softplus", BetaScale: 1, Norm: newGatedNorm()},
		Scan:           Scan{Act: "silu"},
		SSD:            SSD{Act: "silu", Groups: 1, InScale: 1, Norm: newGatedNorm()},
		PerLayer:       PerLayerEmbeddings{EmbedScale: 1, ProjectionScale: 1, Scale: 1},
		AltUp:          AltUp{RouterScale: 1},
		RGLRU:          RGLRU{Blocks: 1, Activation: "gelu", Strength: 8},
		Convolution:    Convolution{Groups: 1, Act: "tanh"},
		RelMaxDistance: 128, RelSpacing: "linear", MaskTokenID: -1, PoolerActivation: "tanh", ClassPooling: "first", SharedEmbeddings: true,
	}
}

func newGatedNorm() GatedNorm {
	return GatedNorm{Function: "rms", Gate: "silu", Position: "after_norm"}
}

// typeShortNames maps long names of network types to their short forms.
var typeShortNames = map[string]string{
	"transformer.encoder_decoder":         "encoder_decoder",
	"transformer.encoder_only":            "encoder_only",
	"transformer.decoder_only":            "decoder_only",
	"transformer.decoder_only.sparse_moe": "decoder_only.sparse_moe",
	"transformer.llama":                   "llama",
	"transformer.bloom":                   "bloom",
}

// A preset is the modules that a network type implies.
type preset struct{ topology, norm, act, pos string }

var presets = map[string]preset{
	"llama":       {"decoder_only", "rms", "silu", "rope"},
	"bloom":       {"decoder_only", "std", "gelu", "alibi"},
	"bert":        {"encoder_only", "", "", ""},
	"general":     {"decoder_only", "", "", ""},
	"transformer": {"decoder_only", "", "", ""},
}

// Topology returns the network type without presets: decoder_only, encoder_only,
// encoder_decoder or decoder_only.sparse_moe.
func (n *Network) Topology() string {
	if p, ok := presets[n.Type]; ok {
		return p.topology
	}
	return n.Type
}

// encodes reports whether the network has an encoder.
func (n *Network) encodes() bool {
	return n.Topology() == "encoder_only" || n.Topology() == "encoder_decoder"
}
func (n *Network) decodes() bool { return n.Topology() != "encoder_only" }
