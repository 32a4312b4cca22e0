// Package tensorfile reads the headers of files of tensors: safetensors and GGUF. Files
// are untrusted: every offset, size, count and name is checked against the file's size,
// and readers allocate no more memory than the size of the header justifies.
package tensorfile

import (
	"bytes"
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// A Tensor describes a stored tensor. Shape is row-major, outermost dimension first, for
// every format (GGUF files store the reverse).
type Tensor struct {
	Name   string
	DType  dtype.Type
	Stored string // safetensors' name of the type
	Shape  []int
	Offset int64 // in the file
	Bytes  int64
}

// A File is what the header of a file says.
type File struct {
	Tensors []Tensor
	// Meta is the metadata: for GGUF the key/value pairs as Go scalars of the stored
	// width, strings, and typed slices such as []string and []float32; for safetensors
	// the strings of __metadata__.
	Meta map[string]any
}

// maxName is the maximum length of a tensor's name in bytes. Names of published models
// have at most 150; errors quote them.
const maxName = 4096

// CheckName returns an error for a name that is too long for one of a tensor.
func CheckName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("a tensor's name has %d bytes; want at most %d", len(name), maxName)
	}
	return nil
}

// Hint names what a file is that is mistaken for one of tensors, by its first bytes: ""
// if it is none of the common ones.
func Hint(head []byte) string {
	start := bytes.ToLower(bytes.TrimSpace(head[:min(len(head), 64)]))
	is := func(prefix string) bool { return bytes.HasPrefix(start, []byte(prefix)) }
	switch {
	case is("version https://git-lfs"):
		return "a Git LFS pointer; fetch the file itself with git lfs pull"
	case is("<!doctype"), is("<html"), is("<?xml"):
		return "a web page; download the file itself"
	}
	return ""
}
