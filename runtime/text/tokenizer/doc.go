// Package tokenizer turns text into token ids and back, in pure Go.
//
// It runs the pipeline of Hugging Face `tokenizers` (added tokens, normalizer,
// pre-tokenizer, model, post-processor, decoder) and gives the same ids. A
// Definition says what the pipeline is; Marshal writes it in a compact form for
// embedding, and Unmarshal reads it. Package spec/tokenizerfile reads the files
// of published models.
//
// A Tokenizer is immutable and safe for concurrent use. Bad definitions give
// errors; bad input text (invalid UTF-8) and unknown ids never fail.
package tokenizer
