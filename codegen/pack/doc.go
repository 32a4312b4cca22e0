// Package pack turns stored tensors by transform into what a compiled model
// computes with, and writes them to the packed file that a model binary runs
// from (package packed).
package pack
