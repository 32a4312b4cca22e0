package packed

import (
	"errors"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages. A kernel without them only makes the model
// slower.
func adviseHuge(b []byte) error {
	if err := unix.Madvise(b, unix.MADV_HUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
