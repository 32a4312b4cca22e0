package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/ir/tensor"
)

// maxSafetensorsHeader is the format's limit of the header in bytes.
const maxSafetensorsHeader = 100_000_000

// safetensorsTypes maps the format's element types to supported types.
var safetensorsTypes = map[string]tensor.DType{
	"F64": tensor.F64, "F32": tensor.F32, "F16": tensor.F16, "BF16": tensor.BF16,
	"I64": tensor.I64, "I32": tensor.I32, "I16": tensor.I16, "I8": tensor.I8, "U8": tensor.U8, "BOOL": tensor.Bool,
}

func looksLikeSafetensors(m *mapping) bool {
	if len(m.data) >= 9 && m.data[8] == '{' {
		return true
	}
	return strings.EqualFold(filepath.Ext(m.path), ".safetensors")
}

// readSafetensors reads a little-endian u64 header length, a JSON object of
// tensors, then the data, which the tensors cover without gaps.
func readSafetensors(m *mapping) (*contents, error) {
	if len(m.data) < 8 {
		return nil, m.errorf("%d bytes: too short for a safetensors file", len(m.data))
	}
	n := binary.LittleEndian.Uint64(m.data)
	if n > maxSafetensorsHeader {
		return nil, m.errorf("header of %d bytes; want at most %d", n, maxSafetensorsHeader)
	}
	if n > uint64(len(m.data)-8) {
		return nil, m.errorf("header of %d bytes in a file of %d: %w", n, len(m.data), errTruncated)
	}
	header, start := m.data[8:8+n], int64(8+n)
	c, err := parseSafetensorsHeader(m, header, start)
	if err != nil {
		return nil, m.errorf("safetensors header: %w", err)
	}
	if err := checkContiguous(c.entries, start, int64(len(m.data))); err != nil {
		return nil, m.errorf("%w", err)
	}
	return c, nil
}

// parseSafetensorsHeader reads the object token by token, because decoding into a
// map would hide duplicate keys.
func parseSafetensorsHeader(m *mapping, header []byte, start int64) (*contents, error) {
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
	c := &contents{meta: map[string]any{}}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := tok.(string)
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
				c.meta[k] = v
			}
			continue
		}
		e, err := safetensorsEntry(dec, start, int64(len(m.data)))
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		e.Name, e.File, e.file = name, m.path, m
		c.entries = append(c.entries, e)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimRight(header[dec.InputOffset():], " "); len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the JSON object", len(rest))
	}
	return c, nil
}

func safetensorsEntry(dec *json.Decoder, start, size int64) (entry, error) {
	var h struct {
		DType   *string   `json:"dtype"`
		Shape   *[]uint64 `json:"shape"`
		Offsets []uint64  `json:"data_offsets"`
	}
	if err := dec.Decode(&h); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return entry{}, fmt.Errorf("have a %s, want an object with dtype (string), shape and data_offsets (integers)", wrong.Value)
		}
		return entry{}, err
	}
	if h.DType == nil || h.Shape == nil || len(h.Offsets) != 2 {
		return entry{}, errors.New("want dtype, shape and two data_offsets")
	}
	dt, ok := safetensorsTypes[*h.DType]
	if f := smallFormats[*h.DType]; !ok && f != nil {
		dt, ok = tensor.U8, true
		if last := len(*h.Shape) - 1; f.packed && last >= 0 { // two numbers per byte
			(*h.Shape)[last] /= 2
		}
	}
	if !ok {
		return entry{}, fmt.Errorf("dtype %q is not supported; supported: F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E8M0, F4, I64, I32, I16, I8, U8 and BOOL", *h.DType)
	}
	shape, want, err := storedSize(dt, *h.Shape)
	if err != nil {
		return entry{}, err
	}
	begin, end, data := h.Offsets[0], h.Offsets[1], uint64(size-start)
	if begin > end {
		return entry{}, fmt.Errorf("data_offsets [%d, %d] are reversed", begin, end)
	}
	if end > data {
		return entry{}, fmt.Errorf("data_offsets [%d, %d] in %d bytes of data: %w", begin, end, data, errTruncated)
	}
	if int64(end-begin) != want {
		return entry{}, fmt.Errorf("%s of shape %v needs %d bytes, but data_offsets [%d, %d] span %d", dt, shape, want, begin, end, end-begin)
	}
	return entry{Info: Info{DType: dt, Shape: shape, Offset: start + int64(begin), Bytes: want}, stored: *h.DType}, nil
}

// checkContiguous returns an error unless the tensors cover the data without
// overlaps, gaps and trailing bytes, as the format requires.
func checkContiguous(entries []entry, start, size int64) error {
	order := make([]*entry, len(entries))
	for i := range entries {
		order[i] = &entries[i]
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

func sortByOffset(order []*entry) {
	slices.SortFunc(order, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Bytes, b.Bytes))
	})
}
