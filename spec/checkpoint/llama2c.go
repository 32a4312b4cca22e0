package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// llama2.c checkpoints, as written by its export.py. Version 0 has a header of
// seven int32 without a magic number. Versions 1 (float32) and 2 (Q8_0) have a
// header of 256 bytes. Tensors are named as in the original LLaMA files. Rotary
// pairs are adjacent rows of wq and wk.
const (
	llama2cMagic     = 0x616b3432
	llama2cHeader    = 256
	llama2cHeaderV0  = 28
	llama2cMaxLayers = 1024
)

func looksLikeLlama2c(m *mapping) bool {
	if len(m.data) >= 4 && binary.LittleEndian.Uint32(m.data) == llama2cMagic {
		return true
	}
	return strings.EqualFold(filepath.Ext(m.path), ".bin")
}

// A llama2cFile holds the header and the state of the layout.
type llama2cFile struct {
	m                          *mapping
	version                    int
	dim, hidden, layers, heads int64
	kvHeads, vocab, seq        int64
	shared                     bool
	group                      int64 // group size of Q8_0 scales; 0 for float32

	at      int64
	entries []entry
	err     error
}

func readLlama2c(m *mapping) (*contents, error) {
	f := &llama2cFile{m: m}
	if err := f.header(); err != nil {
		return nil, m.errorf("neither a llama2.c checkpoint nor another known format: %w", err)
	}
	if f.version == 0 {
		f.layoutV0()
	} else {
		f.layoutV1()
	}
	if f.err != nil {
		return nil, m.errorf("llama2.c: %w", f.err)
	}
	if left := int64(len(m.data)) - f.at; left != 0 {
		return nil, m.errorf("llama2.c: %d bytes after the last tensor; the header does not match the file", left)
	}
	meta := map[string]any{
		"dim": int(f.dim), "hidden_dim": int(f.hidden), "n_layers": int(f.layers), "n_heads": int(f.heads),
		"n_kv_heads": int(f.kvHeads), "vocab_size": int(f.vocab), "seq_len": int(f.seq),
		"shared_classifier": f.shared, "version": f.version, "group_size": int(f.group),
	}
	return &contents{entries: f.entries, meta: meta}, nil
}

func (f *llama2cFile) header() error {
	d := f.m.data
	if len(d) < llama2cHeaderV0 {
		return errTruncated
	}
	numbers := d
	if binary.LittleEndian.Uint32(d) == llama2cMagic {
		if len(d) < llama2cHeader {
			return errTruncated
		}
		f.version = int(int32(binary.LittleEndian.Uint32(d[4:])))
		if f.version != 1 && f.version != 2 {
			return fmt.Errorf("version %d; versions 0, 1 and 2 are supported", f.version)
		}
		numbers = d[8:]
		f.shared = d[36] != 0
		if f.version == 2 {
			f.group = int64(int32(binary.LittleEndian.Uint32(d[37:])))
			if f.group < 1 {
				return fmt.Errorf("group size %d", f.group)
			}
		}
	}
	for i, p := range []*int64{&f.dim, &f.hidden, &f.layers, &f.heads, &f.kvHeads, &f.vocab, &f.seq} {
		*p = int64(int32(binary.LittleEndian.Uint32(numbers[4*i:])))
	}
	if f.version == 0 {
		f.shared = f.vocab > 0 // a negative size means that the classifier has its own weights
		f.vocab = max(f.vocab, -f.vocab)
	}
	if min(f.dim, f.hidden, f.layers, f.heads, f.kvHeads, f.vocab, f.seq) < 1 || f.vocab > math.MaxInt32 || f.layers > llama2cMaxLayers {
		return fmt.Errorf("header dim %d, hidden %d, layers %d, heads %d, kv heads %d, vocabulary %d, sequence %d", f.dim, f.hidden, f.layers, f.heads, f.kvHeads, f.vocab, f.seq)
	}
	if f.dim%f.heads != 0 || f.heads%f.kvHeads != 0 || f.dim/f.heads%2 != 0 {
		return fmt.Errorf("width %d, %d heads and %d key/value heads are not divisible", f.dim, f.heads, f.kvHeads)
	}
	return nil
}

// A llama2cTensor is a tensor of a layer; rows 0 marks a vector.
type llama2cTensor struct {
	name       string
	rows, cols int64
}

func (f *llama2cFile) matrices() []llama2cTensor {
	kv := f.dim / f.heads * f.kvHeads
	return []llama2cTensor{
		{"attention.wq", f.dim, f.dim}, {"attention.wk", kv, f.dim}, {"attention.wv", kv, f.dim}, {"attention.wo", f.dim, f.dim},
		{"feed_forward.w1", f.hidden, f.dim}, {"feed_forward.w2", f.dim, f.hidden}, {"feed_forward.w3", f.hidden, f.dim},
	}
}

// layoutV0 lays out version 0: the embedding, each kind of tensor (norms included)
// for all layers, the final norm, two tables of rotary angles, the classifier.
func (f *llama2cFile) layoutV0() {
	f.at = llama2cHeaderV0
	w := f.matrices()
	f.add("tok_embeddings.weight", f.vocab, f.dim)
	f.layered(llama2cTensor{"attention_norm", 0, f.dim})
	for _, t := range w[:4] {
		f.layered(t)
	}
	f.layered(llama2cTensor{"ffn_norm", 0, f.dim})
	for _, t := range w[4:] {
		f.layered(t)
	}
	f.add("norm.weight", 0, f.dim)
	f.take(f.seq * (f.dim / f.heads) * 4)
	if !f.shared {
		f.add("output.weight", f.vocab, f.dim)
	}
}

// layoutV1 lays out versions 1 and 2: the header, all norms as float32, then the
// matrices, which version 2 quantizes.
func (f *llama2cFile) layoutV1() {
	f.at = llama2cHeader
	f.layered(llama2cTensor{"attention_norm", 0, f.dim})
	f.layered(llama2cTensor{"ffn_norm", 0, f.dim})
	f.add("norm.weight", 0, f.dim)
	f.add("tok_embeddings.weight", f.vocab, f.dim)
	for _, t := range f.matrices() {
		f.layered(t)
	}
	if !f.shared {
		f.add("output.weight", f.vocab, f.dim)
	}
}

func (f *llama2cFile) layered(t llama2cTensor) {
	for i := range f.layers {
		if f.err != nil {
			return
		}
		f.add(fmt.Sprintf("layers.%d.%s.weight", i, t.name), t.rows, t.cols)
	}
}

// take reserves n bytes of the file and returns their offset.
func (f *llama2cFile) take(n int64) int64 {
	at := f.at
	if f.err == nil && n > int64(len(f.m.data))-at {
		f.err = fmt.Errorf("need %d bytes at offset %d of a file of %d: %w", n, at, len(f.m.data), errTruncated)
	}
	if f.err == nil {
		f.at += n
	}
	return at
}

// add lays out the next tensor.
func (f *llama2cFile) add(name string, rows, cols int64) {
	if f.err != nil {
		return
	}
	n, shape := cols, []int{int(cols)}
	if rows > 0 {
		n, shape = rows*cols, []int{int(rows), int(cols)} // both below 2³¹
	}
	if n > int64(len(f.m.data)) {
		f.err = fmt.Errorf("%s: %d elements in a file of %d bytes: %w", name, n, len(f.m.data), errTruncated)
		return
	}
	e := entry{Info: Info{Name: name, DType: tensor.F32, Shape: shape, File: f.m.path, Bytes: 4 * n}, file: f.m}
	if f.version == 2 && rows > 0 {
		if n%f.group != 0 {
			f.err = fmt.Errorf("%s: %d elements in groups of %d", name, n, f.group)
			return
		}
		e.Offset = f.take(n + n/f.group*4)
		e.collect = f.dequantize(e.Offset, n)
	} else {
		e.Offset = f.take(4 * n)
	}
	f.entries = append(f.entries, e)
}

// dequantize converts a matrix of version 2 to float32. The file stores all int8
// codes, then one float32 scale per group; each value is code · scale, correctly
// rounded.
func (f *llama2cFile) dequantize(at, n int64) func() []byte {
	data, group := f.m.data, f.group
	return func() []byte {
		codes, scales := data[at:at+n], data[at+n:]
		out := make([]byte, 4*n)
		for i, c := range codes {
			scale := math.Float32frombits(binary.LittleEndian.Uint32(scales[int64(i)/group*4:]))
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(float32(int8(c))*scale))
		}
		return out
	}
}
