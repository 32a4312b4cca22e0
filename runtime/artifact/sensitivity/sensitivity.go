// Package sensitivity defines what the compiler and a binary's hidden subcommand sensitivity
// exchange, as JSON.
package sensitivity

import "slices"

// A Plan says what to measure.
type Plan struct {
	Tokens int       `json:"tokens"` // of the text
	Window int       `json:"window"` // tokens of a window
	Noise  float64   `json:"noise"`  // error of a unit, relative to the root mean square of each block
	Curve  []float64 `json:"curve"`  // errors of all units at once, ascending
	Units  []Unit    `json:"units"`
}

// A Unit is a group of matrices that get an error at once: the elements Lo to Hi−1 of array
// weights.
type Unit struct {
	Weights []string `json:"weights"`
	Lo      int      `json:"lo"`
	Hi      int      `json:"hi"`
}

// Has reports whether an element of a weight belongs to the unit.
func (u *Unit) Has(weight string, index []int) bool {
	return slices.Contains(u.Weights, weight) && (len(index) == 0 || u.Lo <= index[0] && index[0] < u.Hi)
}

// A Result holds mean KL divergences from the model without errors, in nats.
type Result struct {
	Tokens int       `json:"tokens"` // scored; 0: not measured
	Units  []float64 `json:"units"`
	Curve  []float64 `json:"curve"`
}
