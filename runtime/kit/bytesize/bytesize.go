// Package bytesize reads numbers of bytes.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Size is a number of bytes, as a flag.
type Size int64

// UnmarshalText reads a flag's value.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := Parse(string(text))
	*s = Size(n)
	return err
}

// MarshalText writes the number.
func (s Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(s), 10), nil }

// Parse reads a number of bytes: 500M, 20G, 1.5T; the letters are powers of 1000, and with
// an i, as in 512Mi, of 1024. Fractions of a byte are rounded.
func Parse(text string) (int64, error) {
	digits, base := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "B"), 1000.0
	if d, ok := strings.CutSuffix(digits, "I"); ok {
		digits, base = d, 1024
	}
	factor, letter := 1.0, false
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if d, ok := strings.CutSuffix(digits, suffix); ok {
			digits, letter = d, true
			for range i + 1 {
				factor *= base
			}
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !(n >= 0 && n*factor < 1<<62) || base == 1024 && !letter {
		return 0, fmt.Errorf("invalid size %q; write it as 500M, 20G, 1.5T or 512Mi", text)
	}
	return int64(math.Round(n * factor)), nil
}
