package checkpoint

import (
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
)

var errTruncated = tensorfile.ErrTruncated

// maxRank is the maximum number of dimensions.
const maxRank = tensorfile.MaxDims

func looksLikeSafetensors(m *mapping) bool {
	if len(m.data) >= 9 && m.data[8] == '{' {
		return true
	}
	return strings.EqualFold(filepath.Ext(m.path), ".safetensors")
}

func readSafetensors(m *mapping) (*contents, error) { return readHeader(m, tensorfile.Safetensors) }

func readGGUF(m *mapping) (*contents, error) { return readHeader(m, tensorfile.GGUF) }

// readHeader reads a file whose header describes all tensors.
func readHeader(m *mapping, read func(head []byte, size int64) (*tensorfile.File, error)) (*contents, error) {
	f, err := read(m.data, int64(len(m.data)))
	if err != nil {
		return nil, m.errorf("%w", err)
	}
	c := &contents{meta: f.Meta, entries: make([]entry, len(f.Tensors))}
	for i, t := range f.Tensors {
		c.entries[i] = entry{Info: Info{t.Name, t.DType, t.Shape, m.path, t.Offset, t.Bytes}, file: m, stored: t.Stored}
	}
	return c, nil
}
