//go:build unix

package cuda

import "fmt"

// DriverOf returns a driver with functions in this program, for tests. at returns the
// address of a function by its symbol in the driver's library.
func DriverOf(at func(name string) uintptr) (*Driver, error) {
	d := &Driver{}
	for i, name := range names {
		if d.at[i] = at(name); d.at[i] == 0 && function(i) < required {
			return nil, fmt.Errorf("bug: the stand-in driver lacks %s", name)
		}
	}
	return d, d.call(fnInit, 0)
}
