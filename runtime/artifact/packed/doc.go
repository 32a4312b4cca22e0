// Package packed is the file of packed weights that a model binary runs from:
// its format, and how it is read into memory. Package codegen/pack writes it.
//
// Every offset, size, count and name in a file is hostile until it was checked;
// no more is allocated than the file's own size justifies.
package packed
