// Package checkpoint reads stored weights in every supported file format.
//
// A Set holds the stored tensors of one model, which may be spread over several
// files. Files are mapped read-only and treated as untrusted: every offset, size,
// count and name is checked before any tensor is returned, and readers allocate no
// more memory than the size of the file justifies.
package checkpoint
