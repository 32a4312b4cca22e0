//go:build unix

package binary

import (
	"errors"
	"fmt"
	"os"

	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// OpenWeights opens every file of packed weights without reading the data: the file
// that Weights would open or, for a partitioned model, those of the ranks on this
// machine. The caller closes them.
func (b *Binary) OpenWeights(named string) (files []*Weights, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			files, err = nil, Blame(err)
		}
	}()
	if !b.Partitioned() {
		p, err := b.find(named)
		if err != nil {
			return nil, err
		}
		return []*Weights{p}, b.check(p)
	}
	var missing error
	for rank := range b.Manifest.Partition.Ranks {
		p, err := packed.Open(b.shardPath(rank, named))
		if os.IsNotExist(err) {
			missing = errors.Join(missing, err)
			continue
		}
		if err != nil {
			return files, err
		}
		files = append(files, p)
		own, err := b.ofRank(rank)
		if err == nil {
			err = own.check(p)
		}
		if err != nil {
			return files, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no rank's weights were found: %w", missing)
	}
	return files, nil
}
