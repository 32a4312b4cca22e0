//go:build unix

package binary

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
)

// AdapterBytes returns the memory of an adapter's matrices, of all ranks together. The
// error says why the adapter does not fit the model.
func (b *Binary) AdapterBytes(a *lora.Adapter) (bytes int64, err error) {
	all := b.Manifest.Sites
	if len(all) == 0 {
		return 0, fmt.Errorf("%s has no matrices that adapters can change", b.Manifest.Name)
	}
	shares, err := b.Shares()
	if err != nil {
		return 0, err
	}
	for _, m := range shares {
		n, err := a.SizeRank(m.Sites, m.RowOrders, all)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}
