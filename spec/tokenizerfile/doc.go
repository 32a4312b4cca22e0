// Package tokenizerfile reads the tokenizer files of published models:
// tokenizer.json, vocab.json with merges.txt, vocab.txt, SentencePiece models,
// GGUF metadata and llama2.c's tokenizer.bin.
//
// Each is turned into one tokenizer.Definition, with what the tokenizer's class
// in transformers changes of it, so that the ids are those of Hugging Face.
// Every file is hostile until it was checked: bad ones give errors.
package tokenizerfile
