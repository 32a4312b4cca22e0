//go:build !unix

package hostmem

// addressSpace returns false: there is no such limit.
func addressSpace() (left int64, limited bool) { return 0, false }
