// Package passes rewrites modules. pipeline.go lists the passes; each has one
// file, one row there and one folder in testdata. A pass records meaning in ops
// and attributes, and decisions in annotations. It never writes code.
package passes
