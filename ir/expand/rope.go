package expand

import (
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

// The frequencies of rope, in the float32 arithmetic of transformers. dim is the number of
// rotated channels of a head, of which each pair has a frequency.

// maxRotated is the maximum number of rotated channels of a head.
const maxRotated = 1 << 13

// rotated returns the arguments of a function of frequencies: the rotated channels and numbers.
func (f *frame) rotated(name string, args []any, n int) (dim int, rest []float64) {
	rest = f.numbers(name, args, n)
	dim, ok := args[0].(int)
	if !ok || dim < 2 || dim > maxRotated || dim%2 != 0 {
		f.fail("function %s of %s rotated channels, want an even number up to %d", name, show(args[0]), maxRotated)
	}
	if rest[1] <= 0 {
		f.fail("function %s: the base of the frequencies is %g, want more than 0", name, rest[1])
	}
	return dim, rest[1:]
}

// power returns theta^(2i/dim).
func power(theta float64, i, dim int) float64 {
	return math.Pow(theta, float64(float32(2*i)/float32(dim)))
}

// frequencyList widens float32s, so that their shortest decimal form is that of the float32.
func (f *frame) frequencyList(name string, dim int, frequency func(i int) float32) any {
	out := make([]any, dim/2)
	for i := range out {
		out[i] = f.finite(name, tensor.Decimal(frequency(i)))
	}
	return f.list(out)
}

func (f *frame) ropeFrequencies(name string, args []any) any {
	dim, n := f.rotated(name, args, 2)
	return f.frequencyList(name, dim, func(i int) float32 { return baseFrequency(n[0], i, dim) })
}

func baseFrequency(theta float64, i, dim int) float32 {
	return 1 / float32(power(float64(float32(theta)), i, dim))
}

func (f *frame) dividedFrequencies(name string, args []any) any {
	if len(args) != 2 {
		f.fail("function %s has %d arguments, expected 2", name, len(args))
	}
	freqs, divisors := f.frequencies(name, args[0]), f.frequencies(name, args[1])
	if len(freqs) != len(divisors) {
		f.fail("function %s: %d divisors of %d frequencies, want as many", name, len(divisors), len(freqs))
	}
	return f.frequencyList(name, 2*len(freqs), func(i int) float32 { return float32(freqs[i]) / float32(divisors[i]) })
}

// frequencies returns a list of numbers.
func (f *frame) frequencies(name string, v any) []float64 {
	out, ok := floats(f.only(name, []any{v}))
	if !ok {
		f.fail("function %s needs a list of numbers", name)
	}
	return out
}

func (f *frame) llama3Frequencies(name string, args []any) any {
	dim, n := f.rotated(name, args, 6)
	theta, factor, low, high, old := n[0], float32(n[1]), float32(n[2]), float32(n[3]), n[4]
	lowWave, highWave := old/n[2], old/n[3]
	return f.frequencyList(name, dim, func(i int) float32 {
		x := baseFrequency(theta, i, dim)
		wave := float32(2*math.Pi) / x
		switch {
		case float64(wave) > lowWave:
			return x / factor
		case float64(wave) >= highWave:
			smooth := (float32(old)/wave - low) / (high - low)
			return (1-smooth)*x/factor + smooth*x
		}
		return x
	})
}

func (f *frame) yarnFrequencies(name string, args []any) any {
	if len(args) != 7 {
		f.fail("function %s has %d arguments, expected 7", name, len(args))
	}
	dim, n := f.rotated(name, args[:6], 6)
	theta, factor, old := n[0], n[1], n[2]
	channel := func(rotations float64) float64 {
		return float64(dim) * math.Log(old/(rotations*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high := channel(n[3]), channel(n[4])
	if truth(args[6]) {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = math.Max(low, 0), math.Min(high, float64(dim-1))
	if low == high {
		high += 0.001
	}
	return f.frequencyList(name, dim, func(i int) float32 {
		pos := float32(power(theta, i, dim))
		ramp := min(max((float32(i)-float32(low))/float32(high-low), 0), 1)
		keep := 1 - ramp
		return 1/(float32(factor)*pos)*(1-keep) + 1/pos*keep
	})
}

func (f *frame) longropeFrequencies(name string, args []any) any {
	if len(args) != 3 {
		f.fail("function %s has %d arguments, expected 3", name, len(args))
	}
	dim, n := f.rotated(name, args[:2], 2)
	divisors := f.frequencies(name, args[2])
	if len(divisors) != dim/2 {
		f.fail("function %s: %d divisors of %d frequencies, want as many", name, len(divisors), dim/2)
	}
	return f.frequencyList(name, dim, func(i int) float32 {
		return 1 / (float32(divisors[i]) * float32(power(float64(float32(n[0])), i, dim)))
	})
}
