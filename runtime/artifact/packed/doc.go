// Package packed implements the file format of packed weights and loads them into
// memory. Package codegen/pack writes the files.
//
// Every offset, size, count and name in a file is untrusted until it is checked.
// Allocations are bounded by the file's actual size.
package packed
