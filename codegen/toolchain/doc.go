// Package toolchain compiles generated C with the system's compiler and keeps the
// results in a content-addressed cache.
//
// An object file is named by the SHA-256 of all its inputs: the compiler's identity,
// the flags, the source and the headers. So only changed kernels are recompiled, and
// models with different quantization types share the objects of common units. Two
// processes may compile the same unit at the same time: each writes a file in a private
// directory and renames it into place. Both files have the same content.
package toolchain
