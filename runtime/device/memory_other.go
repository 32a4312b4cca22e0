//go:build unix && !linux

package device

const mapNoReserve = 0

// adviseHuge does nothing: these systems choose page sizes automatically.
func adviseHuge([]byte) {}

func adviseSmall([]byte) {}
