package checkpoint

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// Quantized safetensors: the tensors that form one matrix become one entry
// NAME.weight of [outputs, inputs] in a block type that keeps the stored codes if
// possible. The rest of iflowc reads it like any other matrix.

// quantConfig is the quantization_config of config.json, or quantize_config.json.
// Every field may be missing.
type quantConfig struct {
	Method     string `json:"quant_method"`
	Version    string `json:"version"`           // AWQ: gemm, gemv …
	Checkpoint string `json:"checkpoint_format"` // GPTQ: gptq stores zero − 1, gptq_v2 stores zero
	Block      []int  `json:"weight_block_size"` // rows and columns of a scale's block
	Symmetric  *bool  `json:"sym"`               // GPTQ: the zero is the middle code
}

// maxQuantConfig is the maximum size of config.json in bytes.
const maxQuantConfig = 16 << 20

// readQuantConfig reads the configuration in the folder of the weight files. It
// ignores files that do not exist or are not JSON.
func readQuantConfig(dir string) quantConfig {
	var outer struct {
		Quant quantConfig `json:"quantization_config"`
	}
	if data, err := regular.ReadIn(dir, "config.json", maxQuantConfig); err == nil && json.Unmarshal(data, &outer) == nil && outer.Quant.Method != "" {
		return outer.Quant
	}
	var c quantConfig
	if data, err := regular.ReadIn(dir, "quantize_config.json", maxQuantConfig); err == nil {
		_ = json.Unmarshal(data, &c)
	}
	return c
}

// marks maps suffixes of tensor names to the quantization schemes that use them.
var marks = []struct {
	end   string
	adopt func(s *Set, base string, c quantConfig) error
}{
	{".qweight", adoptIntegers},
	{".weight_packed", adoptCompressed}, // integers; adoptFloats reads 4-bit floats
	{".weight.absmax", adoptFourBits},
	{".W_q", adoptHQQ},
}

// adoptQuantized replaces the quantized matrices of a sorted set by entries.
func (s *Set) adoptQuantized() error {
	if len(s.entries) == 0 {
		return nil
	}
	var c quantConfig
	switch s.format {
	case "safetensors":
		c = readQuantConfig(filepath.Dir(s.entries[0].File))
		if err := s.adoptMarked(c); err != nil {
			return err
		}
	case "gguf": // NVFP4 with scales of whole matrices
	default:
		return nil
	}
	if err := s.adoptFloats(c); err != nil {
		return err
	}
	s.compact()
	return nil
}

// adoptMarked replaces the matrices that the names of their tensors mark.
func (s *Set) adoptMarked(c quantConfig) error {
	for _, t := range s.Tensors() {
		for _, m := range marks {
			if base, ok := strings.CutSuffix(t.Name, m.end); ok {
				if err := m.adopt(s, base, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compact removes the entries that are part of others, and sorts.
func (s *Set) compact() {
	s.entries = slices.DeleteFunc(s.entries, func(e entry) bool { return e.taken })
	clear(s.index)
	s.sort()
}

// take returns a tensor of a quantized matrix and removes it from the set.
func (s *Set) take(name string) (entry, bool) {
	i, ok := s.index[name]
	if !ok {
		return entry{}, false
	}
	s.entries[i].taken = true
	return s.entries[i], true
}

// need is take for a required tensor of one of the given types.
func (s *Set) need(name, with string, types ...tensor.DType) (entry, error) {
	e, ok := s.take(name)
	if !ok {
		return e, fmt.Errorf("%s has no matching %s; the files are incomplete", with, name)
	}
	if !slices.Contains(types, e.DType) {
		return e, fmt.Errorf("%s: tensor %q is %s; expected %v", e.File, name, e.DType, types)
	}
	return e, nil
}

// adopted adds the entry of a whole matrix with the given values. collect returns its bytes;
// nil: they are the values, rounded.
func (s *Set) adopted(like entry, name string, dt tensor.DType, out, in int, values func(r int, x []float32), collect func() []byte) error {
	if _, dup := s.index[name]; dup {
		return fmt.Errorf("%s: tensor %q is stored both whole and in quantized parts; remove one of them", like.File, name)
	}
	e := entry{Info: Info{Name: name, DType: dt, Shape: []int{out, in}, File: like.File, Offset: like.Offset, Bytes: int64(out * dt.RowBytes(in))}, file: like.file, values: values, collect: collect}
	s.index[name] = len(s.entries)
	s.entries = append(s.entries, e)
	return nil
}

// note records a message for the user, unless it is already recorded.
func (s *Set) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(s.notes, line) {
		s.notes = append(s.notes, line)
	}
}

// Notes returns messages for the user about tensors that are not used as they
// are stored.
func (s *Set) Notes() []string { return slices.Clone(s.notes) }

// number decodes an element; the caller has checked that the type is a plain one.
func (e *entry) number(i int) float32 {
	var out [1]float32
	size := e.DType.BlockBytes()
	if err := tensor.Decode(out[:], e.DType, e.raw()[i*size:][:size]); err != nil {
		panic("bug: " + err.Error())
	}
	return out[0]
}

// raw returns the entry's bytes in the mapped file.
func (e *entry) raw() []byte { return e.file.data[e.Offset : e.Offset+e.Bytes : e.Offset+e.Bytes] }
