// Package tokenizer converts text to token ids and back, in pure Go.
//
// It implements the pipeline of Hugging Face tokenizers (added tokens, normalizer,
// pre-tokenizer, model, post-processor, decoder) and returns the same ids. A Definition
// describes the pipeline; Marshal encodes it in a compact form for embedding, and
// Unmarshal decodes it. Package spec/tokenizerfile reads the files of published models.
//
// A Tokenizer is immutable and safe for concurrent use. Invalid definitions return
// errors; invalid input text (invalid UTF-8) and unknown ids never fail.
package tokenizer
