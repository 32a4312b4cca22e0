// Package tokenizer turns text into token ids and back, in pure Go.
//
// It runs the pipeline of Hugging Face `tokenizers` (added tokens, normaliser,
// pre-tokenizer, model, post-processor, decoder) and gives the same ids. Every
// source (tokenizer.json, vocab.json + merges.txt, vocab.txt, SentencePiece
// models, GGUF metadata, llama2.c's tokenizer.bin) is first turned into one
// definition, which Marshal writes in a compact form for embedding.
//
// A Tokenizer is immutable and safe for concurrent use. Bad files give errors;
// bad input text (invalid UTF-8) and unknown ids never fail.
package tokenizer
