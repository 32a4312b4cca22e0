package settings

// gguf is the start of the GGUF keys of sampling settings.
const gguf = "general.sampling."

// A field is a field of a model's configuration: of generation_config.json (the names of
// transformers), or a GGUF key. Exactly one of read, elsewhere, refused and without is set.
type field struct {
	name string
	read func(c *Config, v any) error // sets what the field says

	elsewhere string // it is honored by another part of iflowc
	without   string // it cannot change a text, for this reason
	refused   string // it would change a text, and this is why it cannot

	neutral []any // values of a refused field that change nothing, besides null
	draws   bool  // a refused field matters only where tokens are drawn at random
	older   bool  // models without generation_config.json have it in config.json
}

// fields lists all known fields. Later rows override earlier ones.
var fields = []field{
	// GGUF, the keys of llama.cpp.
	{name: gguf + "sequence", refused: "the order of sampling methods is fixed", neutral: []any{""}, draws: true},
	{name: gguf + "temp", read: value("temperature", 0, 100)},
	{name: gguf + "top_k", read: whole("top_k", -1, 1<<30)},
	{name: gguf + "top_p", read: value("top_p", 0, 1)},
	{name: gguf + "min_p", read: value("min_p", 0, 1)},
	{name: gguf + "xtc_probability", refused: "there is no XTC sampling", neutral: []any{0.0}, draws: true},
	{name: gguf + "xtc_threshold", without: "a parameter of xtc_probability"},
	{name: gguf + "penalty_last_n", read: whole("penalty_window", -1, 1<<30)},
	{name: gguf + "penalty_repeat", read: value("repetition_penalty", 0.001, 1000)},
	{name: gguf + "mirostat", read: whole("mirostat", 0, 2)},
	{name: gguf + "mirostat_tau", read: value("mirostat_tau", 0, 100)},
	{name: gguf + "mirostat_eta", read: value("mirostat_eta", 0, 100)},

	// Length of the text.
	{name: "max_length", read: (*Config).readMaxLength, older: true},
	{name: "max_new_tokens", read: whole("max_new_tokens", 0, 1<<30)},
	{name: "min_length", read: whole("min_length", 0, 1<<30), older: true},
	{name: "min_new_tokens", read: whole("min_new_tokens", 0, 1<<30), older: true},
	{name: "early_stopping", read: (*Config).readStopping, older: true},
	{name: "max_time", refused: "a text ends by its tokens, not by time"},
	{name: "stop_strings", read: (*Config).readStops},

	// Method.
	{name: "do_sample", read: flag(func(c *Config) *bool { c.sample = new(bool); return c.sample }), older: true},
	{name: "num_beams", read: whole("num_beams", 1, 1024), older: true},
	{name: "use_mtp", without: drafts},

	// Scores.
	{name: "temperature", read: value("temperature", 0, 100)},
	{name: "top_k", read: whole("top_k", -1, 1<<30)},
	{name: "top_p", read: value("top_p", 0, 1)},
	{name: "min_p", read: value("min_p", 0, 1)},
	{name: "top_h", refused: "there is no top-h sampling", neutral: []any{1.0}, draws: true},
	{name: "typical_p", read: value("typical_p", 0, 1)},
	{name: "epsilon_cutoff", refused: "there is no epsilon sampling", neutral: []any{0.0, 1.0}, draws: true},
	{name: "eta_cutoff", refused: "there is no eta sampling", neutral: []any{0.0, 1.0}, draws: true},
	{name: "repetition_penalty", read: value("repetition_penalty", 0.001, 1000), older: true},
	{name: "encoder_repetition_penalty", read: value("encoder_repetition_penalty", 0.001, 1000), older: true},
	{name: "length_penalty", read: value("length_penalty", -100, 100), older: true},
	{name: "no_repeat_ngram_size", read: whole("no_repeat_ngram_size", 0, 1<<20), older: true},
	{name: "encoder_no_repeat_ngram_size", read: whole("encoder_no_repeat_ngram_size", 0, 1<<20), older: true},
	{name: "bad_words_ids", read: (*Config).readBadWords, older: true},
	{name: "renormalize_logits", read: flag(func(c *Config) *bool { return &c.rules.Renormalize }), older: true},
	{name: "forced_bos_token_id", read: forced(func(c *Config) *[]int32 { return &c.rules.ForcedBOS }), older: true},
	{name: "force_bos_token_to_be_generated", read: (*Config).readForceBOS, older: true},
	{name: "forced_eos_token_id", read: forced(func(c *Config) *[]int32 { return &c.rules.ForcedEOS }), older: true},
	{name: "remove_invalid_values", read: flag(func(c *Config) *bool { return &c.rules.Finite }), older: true},
	{name: "exponential_decay_length_penalty", read: (*Config).readDecay, older: true},
	{name: "suppress_tokens", read: tokens(func(c *Config) *[]int32 { return &c.rules.Suppress }), older: true},
	{name: "begin_suppress_tokens", read: tokens(func(c *Config) *[]int32 { return &c.rules.BeginSuppress }), older: true},
	{name: "sequence_bias", read: (*Config).readBiases, older: true},
	{name: "token_healing", refused: "the last token of a prompt stays as it is", neutral: []any{false}},
	{name: "guidance_scale", refused: "no second text guides the first", neutral: []any{1.0}},
	{name: "watermarking_config", refused: "texts get no watermark"},

	// Special tokens.
	{name: "bos_token_id", elsewhere: "the compiler sets the first token", older: true},
	{name: "pad_token_id", elsewhere: "the compiler sets the padding token", older: true},
	{name: "eos_token_id", read: tokens(func(c *Config) *[]int32 { return &c.EOS }), older: true},
	{name: "decoder_start_token_id", read: tokens(func(c *Config) *[]int32 { return &c.Start }), older: true},
	{name: "user_token_id", elsewhere: "chat templates read it"},
	{name: "assistant_token_id", elsewhere: "chat templates read it"},

	// What a call returns, and how it computes.
	{name: "num_return_sequences", read: whole("num_return_sequences", 1, 1024), older: true},
	{name: "output_attentions", without: results},
	{name: "output_hidden_states", without: results},
	{name: "output_scores", without: results},
	{name: "output_logits", without: results},
	{name: "return_dict_in_generate", without: results},
	{name: "use_cache", without: memory},
	{name: "cache_implementation", without: memory},
	{name: "cache_config", without: memory},
	{name: "max_cache_len", without: memory},
	{name: "low_memory", without: memory},
	{name: "prefill_chunk_size", without: memory},
	{name: "compile_config", without: speed},
	{name: "disable_compile", without: speed},
	{name: "continuous_batching_config", without: speed},
	{name: "is_assistant", without: drafts},
	{name: "num_assistant_tokens", without: drafts},
	{name: "num_assistant_tokens_schedule", without: drafts},
	{name: "assistant_confidence_threshold", without: drafts},
	{name: "assistant_early_exit", without: drafts},
	{name: "assistant_lookbehind", without: drafts},
	{name: "assistant_ensemble_weight", without: "it matters only with an assistant model, which no file of a model names"},
	{name: "target_lookbehind", without: drafts},
	{name: "prompt_lookup_num_tokens", without: drafts},
	{name: "max_matching_ngram_size", without: drafts},
	{name: "speculation_type", without: drafts},
	{name: "transformers_version", without: origin},
	{name: "_from_model_config", without: origin},
	{name: "_commit_hash", without: origin},

	// Fields of earlier versions.
	{name: "num_beam_groups", refused: "all beams are one group", neutral: []any{0.0, 1.0}, older: true},
	{name: "diversity_penalty", refused: "all beams are one group", neutral: []any{0.0}, older: true},
	{name: "penalty_alpha", refused: "there is no contrastive search", neutral: []any{0.0}},
	{name: "dola_layers", refused: "logits are those of the last layer"},
	{name: "constraints", refused: "no words are forced into a text"},
	{name: "force_words_ids", refused: "no words are forced into a text"},
	{name: "forced_decoder_ids", refused: "only the first and the last token can be forced"},
}

// Reasons for which fields cannot change a text.
const (
	drafts  = "drafts never change a text; --speculate sets them"
	results = "it selects what a call of transformers returns"
	memory  = "it is about the memory of transformers' KV cache"
	speed   = "it is about the speed of transformers"
	origin  = "it says where the file comes from"
)

// lookUp returns the row of a field, or nil.
func lookUp(name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}
