// Package lora reads LoRA adapters: pairs of matrices A [rank, inputs] and B [outputs,
// rank] whose product is added to a model's matrices (Hu et al., LoRA, 2021).
package lora

import "github.com/iflowc/iflowc/runtime/artifact/manifest"

// MaxRank is the highest supported rank: IFL_LORA_RANK.
const MaxRank = 256

// An Adapter is an adapter's checked files.
type Adapter struct{}

// Open reads an adapter: a folder in the format of PEFT, or a GGUF file.
func Open(path string) (*Adapter, error) { panic("not written yet") }

// Pack returns the adapter's matrices for the sites of a program. It returns an error
// that names a matrix of the adapter that no site has.
func (a *Adapter) Pack(sites []manifest.Site, orders [][]manifest.RowRun) (*Packed, error) {
	panic("not written yet")
}

// Packed holds the matrices of an adapter in the layout of ifl_lora.
type Packed struct {
	Sites []PackedSite // by site
	Data  []float32
}

// A PackedSite is the place of a site's matrices in Packed.Data, each at a multiple of
// 16 floats.
type PackedSite struct {
	Rank int // 0: the adapter does not change the site
	A    int // offset of A: [Rank][Cols rounded up to 16]
	B    int // offset of B: [Rows/16 rounded up][Rank][16], with the scale
}
