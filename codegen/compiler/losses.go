package compiler

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

//go:embed losses.yaml
var lossesYAML []byte

// A measuredLoss is what a size costs, measured on one small model.
type measuredLoss struct {
	Quant      string  `yaml:"quant"`
	Bits       float64 `yaml:"bits"` // per weight of a matrix
	Megabytes  int     `yaml:"megabytes"`
	Speed      float64 `yaml:"speed"`      // of decoding one sequence, relative to q8
	Perplexity float64 `yaml:"perplexity"` // relative to f16
}

type measuredLosses struct {
	Model string         `yaml:"model"`
	Sizes []measuredLoss `yaml:"sizes"`
}

// losses are the measurements, largest size first.
var losses = sync.OnceValue(func() (l measuredLosses) {
	d := yaml.NewDecoder(bytes.NewReader(lossesYAML))
	d.KnownFields(true)
	if err := d.Decode(&l); err != nil {
		panic("bug: losses.yaml: " + err.Error())
	}
	return l
})

// text returns the increase of the perplexity: "12 %", or "6.5×" where it is a multiple.
func (l measuredLoss) text() string {
	if l.Perplexity >= 2 {
		return strconv.FormatFloat(l.Perplexity, 'g', 2, 64) + "×"
	}
	return strconv.FormatFloat(100*(l.Perplexity-1), 'g', 2, 64) + " %"
}

// lossOf returns the measurement of the size with the same number of bits as a type. That
// size is the best of them. ok is false for types without a measurement.
func lossOf(t tensor.DType) (l measuredLoss, ok bool) {
	for i, size := range dtype.Sizes {
		if i < len(losses().Sizes) && t.IsBlock() && codeBits(t) == codeBits(size.Type) {
			return losses().Sizes[i], true
		}
	}
	return l, false
}

// codeBits returns the number of bits of a code, which a type's name begins with.
func codeBits(t tensor.DType) (bits int) {
	_, _ = fmt.Sscanf(t.String(), "q%d", &bits) // 0: not a block type
	return bits
}
