// Package tokenizerfile reads the tokenizer files of published models:
// tokenizer.json, vocab.json with merges.txt, vocab.txt, SentencePiece models,
// tekken.json, tiktoken's files, GGUF metadata and llama2.c's tokenizer.bin.
//
// Each source is converted to a tokenizer.Definition with the changes that the
// tokenizer's class in transformers makes, so that the ids are those of Hugging
// Face. Files are untrusted; invalid files result in errors.
package tokenizerfile
