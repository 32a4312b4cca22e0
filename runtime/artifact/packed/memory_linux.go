package packed

import (
	"errors"

	"golang.org/x/sys/unix"
)

// adviseHuge requests huge pages. It ignores kernels without them, where the model is
// slower.
func adviseHuge(b []byte) error {
	if err := unix.Madvise(b, unix.MADV_HUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
