// Package toolchain compiles generated C with the system's compiler and keeps the
// results in a content-addressed cache.
//
// An object file is named by the SHA-256 of everything that decides its bytes:
// the compiler's identity, the flags, the source and the headers. So a changed
// kernel recompiles alone, another quantization type reuses what it shares with
// the last, and two processes that compile the same unit at the same time
// write the same file: each makes its own in a private directory and renames it
// into place, whichever is last.
package toolchain
