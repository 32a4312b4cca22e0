// Package checkpoint reads stored weights of every supported file format.
//
// A Set is one model's stored tensors, whatever files they lie in. Files are
// mapped read-only and checked completely before any tensor is handed out:
// every offset, size, count and name is hostile until then, and no reader
// allocates more than the file's own size justifies.
package checkpoint
