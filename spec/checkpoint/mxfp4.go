package checkpoint

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

const (
	mxfp4Block = 16 // bytes of 32 codes; the low bits of a byte are its first code
	mxfp4Bias  = 127
)

// joinMXFP4 replaces each pair X_blocks [..., n, 16] and X_scales [..., n], as
// gpt-oss stores its experts, by one tensor X: bf16 of [..., 32·n], which
// represents every value exactly. Rows are decoded on demand.
func (s *Set) joinMXFP4() error {
	gone := map[string]bool{}
	for _, b := range slices.Clone(s.entries) {
		base, ok := strings.CutSuffix(b.Name, "_blocks")
		at, paired := s.index[base+"_scales"]
		if !ok || !paired {
			continue
		}
		c, dims := s.entries[at], len(b.Shape)
		if b.DType != tensor.U8 || c.DType != tensor.U8 || dims < 2 || b.Shape[dims-1] != mxfp4Block || !slices.Equal(b.Shape[:dims-1], c.Shape) {
			return fmt.Errorf("%s: tensors %q, %s of shape %v, and %q, %s of %v: expected U8 blocks of 16 bytes and one U8 scale for each", b.File, b.Name, b.DType, b.Shape, c.Name, c.DType, c.Shape)
		}
		if b.Elements() == 0 {
			return fmt.Errorf("%s: tensor %q of shape %v is empty", b.File, b.Name, b.Shape)
		}
		if _, dup := s.index[base]; dup {
			return fmt.Errorf("%s: tensor %q is stored beside %q; each name may occur once", b.File, base, b.Name)
		}
		joined := mxfp4Entry(base, b, c)
		s.entries = append(s.entries, joined)
		gone[b.Name], gone[c.Name] = true, true
	}
	if len(gone) > 0 {
		s.entries = slices.DeleteFunc(s.entries, func(e entry) bool { return gone[e.Name] })
		clear(s.index)
	}
	return nil
}

func mxfp4Entry(name string, blocks, scales entry) entry {
	dims := len(blocks.Shape)
	shape := slices.Clone(blocks.Shape[:dims-1])
	groups := shape[dims-2]
	shape[dims-2] *= 32
	codes := blocks.file.data[blocks.Offset : blocks.Offset+blocks.Bytes]
	powers := scales.file.data[scales.Offset : scales.Offset+scales.Bytes]
	e := entry{Info: Info{Name: name, DType: tensor.BF16, Shape: shape, File: blocks.File, Offset: blocks.Offset}, file: blocks.file}
	e.Bytes = 2 * int64(e.Elements())
	e.values = func(r int, x []float32) {
		for g := range groups {
			at := r*groups + g
			scale := math.Ldexp(1, int(powers[at])-mxfp4Bias)
			for i, c := range codes[at*mxfp4Block : (at+1)*mxfp4Block] {
				x[32*g+2*i], x[32*g+2*i+1] = float32(float64(e2m1[c&15])*scale), float32(float64(e2m1[c>>4])*scale)
			}
		}
	}
	return e
}
