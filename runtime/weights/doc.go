// Package weights reads stored weights of every supported file format, turns
// them by recipe into what a compiled model computes with, and writes and loads
// the packed file that a model binary runs from.
//
// A Set is one model's stored tensors, whatever files they lie in. Files are
// mapped read-only and checked completely before any tensor is handed out:
// every offset, size, count and name is hostile until then, and no reader
// allocates more than the file's own size justifies.
package weights
