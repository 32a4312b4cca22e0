package tensorfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// maxSafetensorsHeader is the format's limit of the header in bytes.
const maxSafetensorsHeader = 100_000_000

// A safetensorsType says how elements of a stored type are read.
type safetensorsType struct {
	dtype   dtype.Type
	perByte int // elements in a byte, if several: the last dimension counts bytes
}

// safetensorsTypes maps the format's element types to supported types. Small floats
// are read as bytes; Tensor.Stored keeps their type.
var safetensorsTypes = map[string]safetensorsType{
	"F64": {dtype: dtype.F64}, "F32": {dtype: dtype.F32}, "F16": {dtype: dtype.F16}, "BF16": {dtype: dtype.BF16},
	"I64": {dtype: dtype.I64}, "I32": {dtype: dtype.I32}, "I16": {dtype: dtype.I16}, "I8": {dtype: dtype.I8}, "U8": {dtype: dtype.U8}, "BOOL": {dtype: dtype.Bool},
	"F8_E4M3": {dtype: dtype.U8}, "F8_E5M2": {dtype: dtype.U8}, "F8_E8M0": {dtype: dtype.U8}, "F4": {dtype.U8, 2},
}

// Safetensors reads the header of a safetensors file: a little-endian u64 header length
// and a JSON object of tensors. The data, which the tensors cover without gaps, follows.
// The file has size bytes and begins with head, which holds at least the header.
func Safetensors(head []byte, size int64) (*File, error) {
	if len(head) < 8 {
		return nil, fmt.Errorf("%d bytes: too short for a safetensors file", size)
	}
	n := binary.LittleEndian.Uint64(head)
	if n > maxSafetensorsHeader {
		return nil, fmt.Errorf("header of %d bytes; want at most %d", n, maxSafetensorsHeader)
	}
	if n > uint64(len(head)-8) {
		return nil, fmt.Errorf("header of %d bytes in a file of %d: %w", n, size, ErrTruncated)
	}
	header, start := head[8:8+n], int64(8+n)
	f, err := parseSafetensorsHeader(header, start, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors header: %w", err)
	}
	return f, checkContiguous(f.Tensors, start, size)
}

// parseSafetensorsHeader reads the object token by token, because decoding into a
// map would hide duplicate keys.
func parseSafetensorsHeader(header []byte, start, size int64) (*File, error) {
	if !utf8.Valid(header) {
		return nil, errors.New("not UTF-8")
	}
	if len(header) == 0 || header[0] != '{' {
		return nil, errors.New("expected a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(header))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	f := &File{Meta: map[string]any{}}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := tok.(string)
		if err := CheckName(name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("%q occurs twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			var meta map[string]string
			if err := dec.Decode(&meta); err != nil {
				return nil, fmt.Errorf("__metadata__: %w", err)
			}
			for k, v := range meta {
				f.Meta[k] = v
			}
			continue
		}
		e, err := safetensorsEntry(dec, start, size)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		e.Name = name
		f.Tensors = append(f.Tensors, e)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimRight(header[dec.InputOffset():], " "); len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the JSON object", len(rest))
	}
	return f, nil
}

func safetensorsEntry(dec *json.Decoder, start, size int64) (Tensor, error) {
	var h struct {
		DType   *string   `json:"dtype"`
		Shape   *[]uint64 `json:"shape"`
		Offsets []uint64  `json:"data_offsets"`
	}
	if err := dec.Decode(&h); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return Tensor{}, fmt.Errorf("have a %.40s, want an object with dtype (string), shape and data_offsets (integers)", wrong.Value)
		}
		return Tensor{}, err
	}
	if h.DType == nil || h.Shape == nil || len(h.Offsets) != 2 {
		return Tensor{}, errors.New("want dtype, shape and two data_offsets")
	}
	t, ok := safetensorsTypes[*h.DType]
	if !ok {
		return Tensor{}, fmt.Errorf("dtype %.40q is not supported; supported: F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E8M0, F4, I64, I32, I16, I8, U8 and BOOL", *h.DType)
	}
	if last := len(*h.Shape) - 1; t.perByte > 1 && last >= 0 {
		(*h.Shape)[last] /= uint64(t.perByte)
	}
	shape, want, err := storedSize(t.dtype, *h.Shape)
	if err != nil {
		return Tensor{}, err
	}
	begin, end, data := h.Offsets[0], h.Offsets[1], uint64(size-start)
	if begin > end {
		return Tensor{}, fmt.Errorf("data_offsets [%d, %d] are reversed", begin, end)
	}
	if end > data {
		return Tensor{}, fmt.Errorf("data_offsets [%d, %d] in %d bytes of data: %w", begin, end, data, ErrTruncated)
	}
	if int64(end-begin) != want {
		return Tensor{}, fmt.Errorf("%s of shape %v needs %d bytes, but data_offsets [%d, %d] span %d", t.dtype, shape, want, begin, end, end-begin)
	}
	return Tensor{DType: t.dtype, Shape: shape, Offset: start + int64(begin), Bytes: want, Stored: *h.DType}, nil
}

// checkContiguous returns an error unless the tensors cover the data without
// overlaps, gaps and trailing bytes, as the format requires.
func checkContiguous(tensors []Tensor, start, size int64) error {
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
	}
	sortByOffset(order)
	at := start
	for _, e := range order {
		if e.Offset < at {
			return fmt.Errorf("tensor %q shares bytes with another at offset %d", e.Name, e.Offset)
		}
		if e.Offset > at {
			return fmt.Errorf("%d bytes at offset %d belong to no tensor", e.Offset-at, at)
		}
		at += e.Bytes
	}
	if at != size {
		return fmt.Errorf("%d bytes after the last tensor", size-at)
	}
	return nil
}

func sortByOffset(order []*Tensor) {
	slices.SortFunc(order, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Bytes, b.Bytes))
	})
}
