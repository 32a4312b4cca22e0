package manifest

// An Engine holds the run-time defaults of a model spec; zero values are unset.
type Engine struct {
	Sequences int    `json:"max_concurrent_queries,omitempty"`
	Threads   int    `json:"cpu_threads,omitempty"`
	Port      int    `json:"http_port,omitempty"`
	MaxOutput int    `json:"max_output_tokens,omitempty"`
	Strategy  string `json:"decoding_strategy,omitempty"` // with parameters: "fsd:k=4"
	Devices   string `json:"devices,omitempty"`

	Speculate   string `json:"speculate,omitempty"` // drafting method: none, lookup, …
	DraftTokens int    `json:"draft_tokens,omitempty"`

	// Parts of the model that stay on the host. On the target cpu they have no effect.
	Layers         int   `json:"cpu_layer_count,omitempty"`
	EncoderLayers  int   `json:"encoder_cpu_layer_count,omitempty"`
	DecoderLayers  int   `json:"decoder_cpu_layer_count,omitempty"`
	HostKVPercent  int   `json:"host_kv_cache_percent,omitempty"`
	HostEmbeddings *bool `json:"be_host_embeddings,omitempty"`
}
