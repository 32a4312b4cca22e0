//go:build unix

package tune

import "slices"

// peakRows are the row counts at which Peak looks for the highest speed: one tile, and
// enough tiles that unpacking a panel once costs little.
var peakRows = []int{16, 64, 256}

// peakRounds and peakBlocks are how often a time is measured; the fastest counts.
const (
	peakRounds = 3
	peakBlocks = 4
)

// leastShare is the least plausible share that half of the columns have in the time of
// all: barriers and packing take the rest. It is 0.4 to 0.5 in undisturbed measurements.
const leastShare = 0.35

// Peak returns the highest speed of a shape's implementations in GOP/s, two operations
// per multiply-add, with as many of its columns as fit into the memory that the driver
// was opened with. The time of half the columns is subtracted, so that barriers and the
// packing of activations do not count.
func (d *Driver) Peak(s Shape) (float64, error) {
	panels := max(1, int(int64(len(d.weights.Bytes))/s.PanelBytes)/(2*d.threads)) * d.threads
	all := make([]int, len(s.Candidates))
	for i := range all {
		all[i] = i
	}
	best := 0.0
	for _, rows := range peakRows {
		var fastest [2][]float64 // with panels and twice as many, of each candidate
		for range peakRounds {
			for i := range fastest {
				s.N = 16 * panels * (i + 1)
				times, _, err := d.Time(s, rows, peakBlocks, all)
				if err != nil {
					return 0, err
				}
				for k, t := range times {
					if len(fastest[i]) <= k {
						fastest[i] = append(fastest[i], slices.Min(t))
					}
					fastest[i][k] = min(fastest[i][k], slices.Min(t))
				}
			}
		}
		for k := range all {
			best = max(best, 2*float64(16*panels*s.K*rows)/marginal(fastest[0][k], fastest[1][k])/1e9)
		}
	}
	return best, nil
}

// marginal returns the time of the second half of the columns, given the times of one
// half and of both. If they are implausible, it is half the time of both.
func marginal(half, both float64) float64 {
	if m := both - half; m >= leastShare*both && m <= both/2 {
		return m
	}
	return both / 2
}
