package spec

// A GatedNorm is the norm on the output of a token mixer, with the gate around it.
type GatedNorm struct {
	Groups   int     `yaml:"groups"`                                       // slices of the columns that are normalized separately; 0: one per head, in ssd one per group
	Function string  `yaml:"function" words:"rms|std"`                     // function of the norm; it is applied if the files have its weights
	Eps      float64 `yaml:"eps"`                                          // ε of the norm; 0: norm_eps
	Gate     string  `yaml:"gate" words:"none|sigmoid|silu"`               // activation of the gate, by which the output is multiplied
	Position string  `yaml:"gate_position" words:"after_norm|before_norm"` // whether the output is multiplied by the gate after the norm or before it
}

// A LinearAttention describes the layers with linear attention. Each head has a matrix
// as state; see linear_recurrence in docs/ops.md.
type LinearAttention struct {
	Heads      int       `yaml:"heads"`                                                                                      // heads of values and of the state
	KeyHeads   int       `yaml:"key_heads"`                                                                                  // heads of queries and keys; 0: heads
	KeyDim     int       `yaml:"key_dim"`                                                                                    // channels of a query or key head
	ValueDim   int       `yaml:"value_dim"`                                                                                  // channels of a value head; 0: key_dim
	Layout     string    `yaml:"layout" words:"blocks|heads"`                                                                // rows of fused matrices; blocks: all of q, then k, v and the gate; heads: grouped by key head
	GateLayout string    `yaml:"gate_layout" words:"blocks|heads"`                                                           // rows of a matrix of beta and decay; default: layout
	Order      string    `yaml:"value_order" words:"grouped|tiled"`                                                          // heads of values; grouped: those of a key head follow one another; tiled: head h belongs to key head h mod key_heads (GGUF)
	Act        string    `yaml:"activation" words:"none|silu|relu|gelu|gelu_erf|quick_gelu|sigmoid|tanh|identity|relu2|elu"` // activation of queries, keys and values, after their convolution
	QKNorm     string    `yaml:"qk_norm" words:"none|l2|rms"`                                                                // norm on the heads of queries and keys
	QKNormEps  float64   `yaml:"qk_norm_eps"`                                                                                // ε of qk_norm; 0: norm_eps
	Scale      float64   `yaml:"scale"`                                                                                      // factor on the queries; 0: 1/√key_dim
	Rope       bool      `yaml:"rope"`                                                                                       // rotate queries and keys as in attention
	Decay      string    `yaml:"decay" words:"none|alibi|geometric|retention|head|channel"`                                  // decay of the state; alibi: ALiBi's slopes; geometric: 2^(−8(h+1)/heads) for head h; retention: 1 − 2^(−5−h) for head h (RetNet); head, channel: computed for each head or key channel
	DecayForm  string    `yaml:"decay_form" words:"softplus|sigmoid"`                                                        // with head or channel, from the projection x, dt and a; softplus: −exp(a)·softplus(x + dt); sigmoid: decay_bound·sigmoid(exp(a)·(x + dt))
	Bound      float64   `yaml:"decay_bound"`                                                                                // with sigmoid: the strongest decay, negative
	ByLayer    bool      `yaml:"decay_by_layer"`                                                                             // with alibi, geometric: the slopes of layer i of N are multiplied by 1 − (i − decay_first_layer)/(N − 1) + 1e-5 (Lightning Attention)
	First      int       `yaml:"decay_first_layer"`                                                                          // with decay_by_layer
	DeltaRule  bool      `yaml:"delta_rule"`                                                                                 // a token replaces what the state holds for its key (DeltaNet)
	BetaScale  float64   `yaml:"beta_scale"`                                                                                 // factor on the sigmoid of beta, the strength of writing; 2 allows negative eigenvalues
	OutScale   float64   `yaml:"out_scale"`                                                                                  // factor on the output; 0: attn_out_scale
	Residual   float64   `yaml:"residual_scale"`                                                                             // factor on the residual; 0: attn_residual_scale
	Norm       GatedNorm `yaml:"norm"`                                                                                       // norm and gate of the output
}

// A Scan describes the layers with a selective scan (Gu and Dao 2023).
type Scan struct {
	Act     string  `yaml:"activation" words:"silu|relu|gelu|gelu_erf|quick_gelu|sigmoid|tanh|identity|relu2|elu"` // activation after the convolution
	Norms   bool    `yaml:"norms"`                                                                                 // normalize the projections dt, B and C without weights (Falcon Mamba)
	NormEps float64 `yaml:"norm_eps"`                                                                              // ε of the norms on dt, B and C; 0: norm_eps
}

// An SSD describes the layers with state-space duality (Dao and Gu 2024).
type SSD struct {
	Act       string    `yaml:"activation" words:"silu|relu|gelu|gelu_erf|quick_gelu|sigmoid|tanh|identity|relu2|elu"` // activation after the convolution
	Heads     int       `yaml:"heads"`                                                                                 // heads
	HeadDim   int       `yaml:"head_dim"`                                                                              // channels of a head
	Groups    int       `yaml:"groups"`                                                                                // groups of heads that share B and C
	StateSize int       `yaml:"state_size"`                                                                            // numbers of state per channel
	DTMin     float64   `yaml:"dt_min"`                                                                                // lower bound of the step sizes
	DTMax     float64   `yaml:"dt_max"`                                                                                // upper bound of the step sizes; 0: none
	InScale   float64   `yaml:"in_scale"`                                                                              // factor on the input
	Scales    []float64 `yaml:"scales"`                                                                                // factors on the parts of the projected input: gate, x, B, C, dt; default: 1
	OutScale  float64   `yaml:"out_scale"`                                                                             // factor on the output; 0: attn_out_scale
	Norm      GatedNorm `yaml:"norm"`                                                                                  // norm and gate of the output
}

// A SharedBlock describes a transformer block that several layers share, in front of
// their token mixers (Zamba2).
type SharedBlock struct {
	Pattern []string `yaml:"pattern" words:"none|block"` // layers with a shared block, repeated
	Blocks  int      `yaml:"blocks"`                     // number of blocks, which these layers use in turn
}

// A TimeMix describes the layers with RWKV-7's time mixing (Peng et al. 2025).
type TimeMix struct {
	HeadDim int     `yaml:"head_dim"` // channels of a head
	NormEps float64 `yaml:"norm_eps"` // ε of the norm on the heads' outputs; 0: head_dim · norm_eps
}

// A RGLRU describes the layers with a real-gated linear recurrent unit (De et al. 2024).
type RGLRU struct {
	Blocks     int     `yaml:"blocks"`                                                                                // diagonal blocks of the gates' matrices
	Activation string  `yaml:"activation" words:"gelu|silu|relu|gelu_erf|quick_gelu|sigmoid|tanh|identity|relu2|elu"` // activation of the branch beside the recurrence
	Strength   float64 `yaml:"decay_scale"`                                                                           // factor c on the logarithm of the decay
}

// PerLayerEmbeddings describe a second table of embeddings, with size columns for each
// layer. A layer reads scale · (norm(projection_scale · P·x) + embed_scale · row), with the
// token embeddings x; P and the norm are optional.
type PerLayerEmbeddings struct {
	Size            int     `yaml:"size"`             // columns of a layer; 0: none
	EmbedScale      float64 `yaml:"embed_scale"`      // factor on a row of the table
	ProjectionScale float64 `yaml:"projection_scale"` // factor on the projection of the token embeddings
	Scale           float64 `yaml:"scale"`            // factor on the sum of both
}

// AltUp describes alternating updates (Baykal et al. 2023): several residual streams, of
// which each layer computes on one. Small matrices, computed for each token, predict the
// others before the layer and correct them after it (Gemma 3n).
type AltUp struct {
	Streams     int     `yaml:"streams"`       // number of residual streams; 0: one, without updates
	Active      int     `yaml:"active"`        // stream that layers compute on, counted from 0
	RouterScale float64 `yaml:"router_scale"`  // factor on the normed input of the router
	OutScale    bool    `yaml:"correct_scale"` // the gate of per_layer_embeddings reads the active stream times stored factors
}

// An Indexer describes sparse attention: a small scorer that chooses the rows of the KV
// cache that a token attends to (DeepSeek-V3.2, §2.1).
type Indexer struct {
	Pattern       []string `yaml:"pattern" words:"own|shared"` // indexer of each layer, repeated; own: the layer's own; shared: the choice of the last layer with one; default: none, and attention to all rows
	Heads         int      `yaml:"heads"`                      // heads that score rows
	HeadDim       int      `yaml:"head_dim"`                   // channels of a head
	TopK          int      `yaml:"top_k"`                      // rows that a token attends to
	QKColumnOrder int      `yaml:"qk_column_order"`            // pairs of channels that rope rotates, at the start of a head; 0, 1: neighbors; 2: channel i and i + half
	NormEps       float64  `yaml:"norm_eps"`                   // ε of the norm on keys; 0: norm_eps
}

// A Compression describes attention to compressed rows beside those of a sliding window
// (DeepSeek-V4, §2.3).
type Compression struct {
	Pattern      []string `yaml:"pattern" words:"none|overlapping|separate"` // windows that are compressed in each layer, repeated; overlapping: with the window before, and an indexer chooses among the compressed rows; separate: without, and all compressed rows are read
	OverlapEvery int      `yaml:"overlapping_every"`                         // rows of an overlapping window
	EachEvery    int      `yaml:"separate_every"`                            // rows of a separate window
}

// A Convolution describes a convolution of the embeddings along the text, beside the first
// layer of an encoder. Layer 1 reads norm(layer 0 + activation(convolution)) (DeBERTa v2).
type Convolution struct {
	KernelSize int    `yaml:"kernel_size"`                                                                           // tokens that it reads, in the middle its own; odd; 0: no convolution
	Groups     int    `yaml:"groups"`                                                                                // groups of columns that are convolved separately
	Act        string `yaml:"activation" words:"tanh|gelu|gelu_erf|silu|relu|quick_gelu|sigmoid|identity|relu2|elu"` // activation of its output
}

// A Streams describes hyper-connections: several residual streams that each block reads,
// writes and mixes by learned weights (Xie et al. 2026).
type Streams struct {
	Count      int     `yaml:"count"`      // residual streams; 0: one, without hyper-connections
	Iterations int     `yaml:"iterations"` // iterations of Sinkhorn–Knopp on the mixing weights
	Eps        float64 `yaml:"eps"`        // floor of the weights
}
