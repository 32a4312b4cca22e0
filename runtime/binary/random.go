//go:build unix

package binary

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// A WeightTarget is a place for a file of weights.
type WeightTarget struct {
	Path     string
	manifest *manifest.Manifest
}

// WeightTargets returns the places of the weights, with named as in OpenWeights: one, or
// one for each rank.
func (b *Binary) WeightTargets(named string) ([]WeightTarget, error) {
	if b.Partitioned() {
		var list []WeightTarget
		shares, err := b.Shares()
		for rank, m := range shares {
			list = append(list, WeightTarget{b.shardPath(rank, named), m})
		}
		return list, err
	}
	if named == "" {
		embedded, err := packed.OpenBehind(b.Program)
		if err != nil {
			return nil, err
		}
		if embedded != nil {
			embedded.Close()
			return nil, fmt.Errorf("%s contains its weights: name a file with -o, and pass it with --weights", b.Program)
		}
		named = b.Program + ".weights"
	}
	return []WeightTarget{{named, b.Manifest}}, nil
}

// Replaceable returns an error if the place has a file that is not one of random weights.
func (t WeightTarget) Replaceable() error {
	p, err := packed.Open(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer p.Close()
		if _, random := p.Random(); random {
			return nil
		}
	}
	return fmt.Errorf("%s exists and does not have random weights: name another file with -o, or remove it", t.Path)
}

// WriteRandom writes random weights and returns their size in bytes.
func (t WeightTarget) WriteRandom(seed uint64) (bytes int64, err error) {
	items := make([]packed.Item, len(t.manifest.Weights))
	for i, w := range t.manifest.Weights {
		items[i] = packed.Item{
			Name: w.Name, Index: w.Index, DType: w.DType, Rows: w.Rows, Cols: w.Cols, Layout: w.Layout, SparseOutliers: w.SparseOutliers,
		}
		bytes += w.Bytes
	}
	return bytes, packed.WriteRandom(t.Path, seed, items)
}

// RandomWeights returns the seed if weights that Weights would open are random ones.
func (b *Binary) RandomWeights(named string) (seed uint64, ok bool) {
	files, err := b.OpenWeights(named)
	if err != nil {
		return 0, false
	}
	for _, f := range files {
		if s, random := f.Random(); random {
			seed, ok = s, true
		}
		f.Close()
	}
	return seed, ok
}
