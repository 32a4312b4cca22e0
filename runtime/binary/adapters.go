//go:build unix

package binary

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
)

// AdapterBytes returns the memory of an adapter's matrices. The error says why the
// adapter does not fit the model.
func (b *Binary) AdapterBytes(a *lora.Adapter) (int64, error) {
	if !b.Partitioned() {
		if len(b.Manifest.Sites) == 0 {
			return 0, fmt.Errorf("%s has no matrices that adapters can change", b.Manifest.Name)
		}
		return a.Size(b.Manifest.Sites, b.Manifest.RowOrders)
	}
	// Each rank of a tensor-parallel group has at most all of a matrix.
	n := int64(0)
	for _, m := range a.Matrices() {
		n += int64(m.Rank) * (int64(m.In) + int64(m.Out)) * 4
	}
	return n * int64(b.Manifest.Partition.Ranks[0].TPSize), nil
}
