// Package spec turns a model spec into IR.
//
// A model spec is a YAML file of atomic modules (norm, positions, attention,
// FFN) and a map of tensor names. The package also reads Inferflow's
// model_spec.json unchanged, and it derives a spec from a Hugging Face folder, a
// GGUF file or a llama2.c file. The steps are
//
//	Load      file → Spec             strict reading; defaults from config.json or the file's metadata
//	Resolve   Spec, headers → Model   hyper-parameters and tensor names, checked against stored shapes
//	Lower     Model → IR              each module writes its ops, layer by layer
//
// The definitions of model families are in models/families/*.yaml, not in Go.
package spec
