// Package codegen spells a module with notes as source text. Decisions are
// the passes'; codegen reads them from the notes and has a default for each,
// so that a module without notes also builds and runs.
//
// cpu*.go write the step function in C and the manifest; glue.go and module.go
// write the Go module that becomes the per-model binary.
package codegen
