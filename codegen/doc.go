// Package codegen emits source code from a module with annotations. The passes make
// the decisions; codegen reads them from the annotations and has a default for each,
// so that a module without annotations also builds and runs.
//
// The step is planned once for all targets and emitted by one package per target:
//
//	codegen/layout   placement of weights, states and values; the regions as data
//	codegen/ctext    C that targets share: literals, names, row ops
//	codegen/cpu      step.c for CPUs, and the manifest
//	codegen/cuda     kernels for GPUs, and their launches
//
// The emitters depend on the layout but not on each other. A region's computation is a
// Work of package layout; both emitters switch over its kinds. Code that is the same
// for every model is in headers of package templates.
//
// [CPU] and [CUDA] are the entry points. glue.go and module.go write the Go module of
// the per-model binary.
package codegen
