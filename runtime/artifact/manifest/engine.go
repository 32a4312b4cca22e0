package manifest

// An Engine is how the specification wants its model to be run; zero values
// leave it to flags and to the runtime.
type Engine struct {
	Sequences int    `json:"max_concurrent_queries,omitempty"`
	Threads   int    `json:"cpu_threads,omitempty"`
	Port      int    `json:"http_port,omitempty"`
	MaxOutput int    `json:"max_output_tokens,omitempty"`
	Strategy  string `json:"decoding_strategy,omitempty"` // with parameters: "fsd:k=4"
	Devices   string `json:"devices,omitempty"`

	Speculate   string `json:"speculate,omitempty"` // how tokens are drafted: none, lookup, …
	DraftTokens int    `json:"draft_tokens,omitempty"`

	// Shares that stay on the host. On the target cpu everything does.
	Layers         int   `json:"cpu_layer_count,omitempty"`
	EncoderLayers  int   `json:"encoder_cpu_layer_count,omitempty"`
	DecoderLayers  int   `json:"decoder_cpu_layer_count,omitempty"`
	HostKVPercent  int   `json:"host_kv_cache_percent,omitempty"`
	HostEmbeddings *bool `json:"be_host_embeddings,omitempty"`
}
