// Package codegen turns a module with annotations into source text. Decisions
// are the passes'; codegen reads them from the annotations and has a default
// for each, so that a module without them also builds and runs.
//
// The step is planned once for every target and emitted by one package a
// target, side by side:
//
//	codegen/layout   where weights, states and values lie; the regions as data
//	codegen/ctext    C that targets share: literals, names, row ops
//	codegen/cpu      step.c for processors, and the manifest
//	codegen/cuda     kernels for GPUs, and the list of their launches
//
// An emitter knows the layout and never the other emitter. What a region does
// is a Work of package layout; both switch over its kinds. Text that is the same for
// every model is in headers of package templates, so that step.c is the model
// and little else.
//
// [CPU] and [CUDA] are the entries. glue.go and module.go write the Go module
// that becomes the per-model binary.
package codegen
