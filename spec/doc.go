// Package spec turns a model spec into IR.
//
// A model spec is a YAML file of atomic modules (which norm, which
// positions, which attention, which FFN) and a map of tensor names; or an
// Inferflow model_spec.json, unchanged; or it is derived from a Hugging Face
// folder, a GGUF file or a llama2.c file. The steps are
//
//	Load      file → Spec          strict reading, defaults from config.json or the file's metadata
//	Resolve   Spec, headers → Model    hyper-parameters and tensor names, checked against stored shapes
//	Lower     Model → IR           each module writes the lines of IR text that are its meaning
//
// What a family of models needs stands in models/families/*.yaml, never in Go.
package spec
