//go:build unix

package cuda

import "fmt"

// DriverOf is a driver whose functions lie in this program, for tests: at gives
// the address of each by the name that the CUDA driver's library has for it.
func DriverOf(at func(name string) uintptr) (*Driver, error) {
	d := &Driver{}
	for i, name := range names {
		if d.at[i] = at(name); d.at[i] == 0 {
			return nil, fmt.Errorf("bug: the stand-in driver lacks %s", name)
		}
	}
	return d, d.call(fnInit, 0)
}
