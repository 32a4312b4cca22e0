package tensor

import "strconv"

// Decimal returns the float64 with the shortest decimal form of a float32, so that 1e-05
// stays 1e-05.
func Decimal(x float32) float64 {
	d, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return d
}
