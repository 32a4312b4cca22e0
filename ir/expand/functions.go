package expand

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A function is one of the expression language.
type function struct {
	args string // as the documentation shows them
	doc  string
	call func(f *frame, name string, args []any) any
}

// functions are those that compute from the values of their arguments. len, min, max, range,
// abs, int, float, any, all and reversed are Starlark's.
var functions = map[string]function{
	"len":      {"list", "number of elements", (*frame).length},
	"min":      {"a, b, … or list", "least number", func(f *frame, name string, args []any) any { return f.extreme(name, args, -1) }},
	"max":      {"a, b, … or list", "greatest number", func(f *frame, name string, args []any) any { return f.extreme(name, args, 1) }},
	"range":    {"lo, hi, step", "integers from lo (0) to below hi", (*frame).ranged},
	"abs":      {"x", "absolute value", (*frame).abs},
	"int":      {"x", "x without its fraction", (*frame).int},
	"float":    {"x", "x as a number with a fraction", func(f *frame, name string, args []any) any { return f.numbers(name, args, 1)[0] }},
	"any":      {"list", "whether an element is true", func(f *frame, name string, args []any) any { return slices.ContainsFunc(f.only(name, args), truth) }},
	"all":      {"list", "whether all elements are true", func(f *frame, name string, args []any) any { return !slices.ContainsFunc(f.only(name, args), not) }},
	"reversed": {"list", "the list from its end", (*frame).reversed},
	"mod":      {"a, b", "a − b·⌊a/b⌋", (*frame).mod},
	"sqrt":     {"x", "square root", real(math.Sqrt)},
	"exp":      {"x", "eˣ", real(math.Exp)},
	"exp2":     {"x", "2ˣ", real(math.Exp2)},
	"log":      {"x", "natural logarithm", real(math.Log)},
	"log1p":    {"x", "log(1 + x)", real(math.Log1p)},
	"erfinv":   {"x", "inverse of the error function", real(math.Erfinv)},
	"float32":  {"x", "x rounded to a float32", real(func(x float64) float64 { return float64(float32(x)) })},
	"pow": {"x, y", "xʸ", func(f *frame, name string, args []any) any {
		n := f.numbers(name, args, 2)
		return f.finite(name, math.Pow(n[0], n[1]))
	}},
	"each":         {"x, from, to, …", "the entries of a list x, or the characters of a text, from replaced by to; a last argument without a pair replaces all others; to may be a list, of which the entry of the same place is taken", (*frame).eachOf},
	"entry":        {"x, i", "entry i of a list x, None beyond its end; x, if it is no list", (*frame).entryOf},
	"keys":         {"x", "the keys of a mapping of config.json", (*frame).keys},
	"member":       {"x, key", "the value of a key of a mapping, or an entry of a list; None if there is none", (*frame).memberOf},
	"parts":        {"text, between", "the parts of a text between separators; a list, if it is one", (*frame).partsOf},
	"bf16":         {"x", "x rounded to a bf16", real(roundBF16)},
	"flatten":      {"list", "the elements of the lists in a list", func(f *frame, name string, args []any) any { return f.list(f.flatten(nil, f.only(name, args))) }},
	"layer":        {"", "number of the layer that the instance is in; 0 outside of layers", func(f *frame, name string, args []any) any { return f.layer() }},
	"of_layer":     {"list", "the element of a list, which is repeated, for the layer that the instance is in", (*frame).ofLayer},
	"cols":         {"%x", "number of columns of a value", (*frame).cols},
	"shape":        {"of, n", "sizes of a weight, or of a stored tensor by its name; n: how many they must be", (*frame).shapeOf},
	"bool":         {"x", "whether x counts as true in a condition", func(f *frame, name string, args []any) any { return f.truth(name, args) }},
	"same":         {"a, b", "whether two tensors, by their names, are stored and not known to differ", (*frame).same},
	"values":       {"name", "the numbers of a small stored tensor, such as divisors of frequencies", (*frame).values},
	"required":     {"@w", "fails if the weight, which may be absent, is not stored", (*frame).required},
	"alibi_slopes": {"heads, factor", "slopes of ALiBi for each head (Press et al. 2021, §3), times a factor", (*frame).alibi},

	"rope_frequencies":     {"dim, theta", "theta^(−2i/dim) for each pair i of rotated channels (Su et al. 2021, eq. 15)", (*frame).ropeFrequencies},
	"divided_frequencies":  {"frequencies, divisors", "each frequency divided by its divisor, in float32", (*frame).dividedFrequencies},
	"llama3_frequencies":   {"dim, theta, factor, low, high, context", "frequencies of Llama 3.1: those with fewer than low rotations in the context are divided by factor, those with more than high kept", (*frame).llama3Frequencies},
	"yarn_frequencies":     {"dim, theta, factor, context, fast, slow, truncate", "frequencies of YaRN (Peng et al. 2023, §3.2): those with fewer than slow rotations in the context are divided by factor, those with more than fast kept", (*frame).yarnFrequencies},
	"longrope_frequencies": {"dim, theta, divisors", "frequencies of LongRoPE (Ding et al. 2024), divided by a divisor each", (*frame).longropeFrequencies},
}

// functionNames returns the names of all functions, sorted.
func functionNames() []string {
	return append(slices.Sorted(maps.Keys(functions)), "stored", "known", "size", "tensor")
}

// IsFunction reports whether a function has the name.
func IsFunction(name string) bool { return slices.Contains(functionNames(), name) }

func not(v any) bool { return !truth(v) }

// numbers returns the arguments of a function of n numbers.
func (f *frame) numbers(name string, args []any, n int) []float64 {
	if len(args) != n {
		f.fail("function %s has %d arguments, expected %d", name, len(args), n)
	}
	out, ok := floats(args)
	if !ok {
		for _, a := range args {
			if _, isNumber := float(a); !isNumber {
				f.fail("function %s of %s, want a number", name, typeName(a))
			}
		}
	}
	return out
}

// only returns the only argument of a function of a list, which reads all its elements.
func (f *frame) only(name string, args []any) []any {
	if len(args) == 1 {
		if l, ok := args[0].([]any); ok {
			f.spend(len(l))
			return l
		}
	}
	f.fail("function %s needs one list", name)
	return nil
}

// real returns a function of one number.
func real(fn func(x float64) float64) func(f *frame, name string, args []any) any {
	return func(f *frame, name string, args []any) any { return f.finite(name, fn(f.numbers(name, args, 1)[0])) }
}

// finite fails for a result that is no number.
func (f *frame) finite(name string, x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		f.fail("function %s: the result is no finite number", name)
	}
	return x
}

func (f *frame) length(name string, args []any) any {
	if len(args) == 1 {
		switch v := args[0].(type) {
		case []any:
			return len(v)
		case string:
			return len(v)
		}
	}
	f.fail("function %s needs one list", name)
	return nil
}

func (f *frame) extreme(name string, args []any, sign int) any {
	if len(args) == 1 {
		args = f.only(name, args)
	}
	if len(args) == 0 {
		f.fail("function %s of nothing", name)
	}
	best := args[0]
	for _, v := range args {
		n := f.numbers(name, []any{best, v}, 2)
		if sign > 0 && n[1] > n[0] || sign < 0 && n[1] < n[0] {
			best = v
		}
	}
	return best
}

func (f *frame) ranged(name string, args []any) any {
	n, ok := listOf[int](args)
	if !ok || len(n) < 1 || len(n) > 3 {
		f.fail("function range needs one to three integers")
	}
	lo, hi, step := 0, n[0], 1
	if len(n) > 1 {
		lo, hi = n[0], n[1]
	}
	if len(n) > 2 {
		step = n[2]
	}
	if step == 0 {
		f.fail("function range: the step is 0")
	}
	out := []any{}
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		if out = append(out, i); len(out) > maxList {
			break
		}
	}
	return f.list(out)
}

func (f *frame) abs(name string, args []any) any {
	x := f.numbers(name, args, 1)[0]
	if n, ok := args[0].(int); ok {
		return max(n, -n)
	}
	return math.Abs(x)
}

func (f *frame) int(name string, args []any) any {
	if len(args) == 1 {
		if b, ok := args[0].(bool); ok {
			if b {
				return 1
			}
			return 0
		}
	}
	x := math.Trunc(f.numbers(name, args, 1)[0])
	if math.Abs(x) > 1<<53 || math.IsNaN(x) {
		f.fail("the number %g is too large", x)
	}
	return int(x)
}

func (f *frame) reversed(name string, args []any) any {
	out := f.list(slices.Clone(f.only(name, args)))
	slices.Reverse(out)
	return out
}

func (f *frame) ofLayer(name string, args []any) any {
	list := f.only(name, args)
	if len(list) == 0 {
		f.fail("function %s needs a list with elements", name)
	}
	return list[f.layer()%len(list)]
}

func (f *frame) mod(name string, args []any) any {
	n := f.numbers(name, args, 2)
	if n[1] == 0 {
		f.fail("division by zero")
	}
	a, isA := args[0].(int)
	b, isB := args[1].(int)
	if isA && isB {
		r := a % b
		if r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return r
	}
	r := math.Mod(n[0], n[1])
	if r != 0 && (r < 0) != (n[1] < 0) {
		r += n[1]
	}
	return r
}

func (f *frame) truth(name string, args []any) any {
	if len(args) != 1 {
		f.fail("function %s has %d arguments, expected 1", name, len(args))
	}
	return truth(args[0])
}

// alibi returns the slopes for any number of heads: powers of 2^(−8/n) for the largest power
// of two n up to heads, then the odd powers of 2^(−4/n).
func (f *frame) alibi(name string, args []any) any {
	p := f.numbers(name, args, 2)
	heads := int(p[0])
	if heads < 1 || heads > maxList {
		f.fail("function %s of %d heads", name, heads)
	}
	n := 1 << int(math.Floor(math.Log2(float64(heads))))
	out := make([]any, heads)
	for i := range out {
		if i < n {
			out[i] = math.Pow(2, -8/float64(n)*float64(i+1)) * p[1]
		} else {
			out[i] = math.Pow(2, -4/float64(n)*float64(2*(i-n)+1)) * p[1]
		}
	}
	return f.list(out)
}

func (f *frame) cols(name string, args []any) any {
	if len(args) == 1 {
		if v, ok := args[0].(*ir.Value); ok && v.Kind != ir.State && v.Kind != ir.Weight && len(v.Type.Shape) > 0 {
			return v.Type.Cols()
		}
	}
	f.fail("function cols needs a value of the graph")
	return nil
}

// shapeOf returns the sizes of a weight or a tensor, which may have to be of a given number.
func (f *frame) shapeOf(name string, args []any) any {
	if len(args) < 1 || len(args) > 2 {
		f.fail("function %s has %d arguments, expected 1 or 2", name, len(args))
	}
	var of Tensor
	switch v := args[0].(type) {
	case *weightVar:
		if v.found != nil {
			of = Tensor{File: v.found.Tensors[0].File, Shape: v.found.Shape}
		}
	case *sourceValue:
		if len(v.missing) > 0 {
			f.missing(v.missing[0])
		}
		of = Tensor{File: v.tensors[0].File, Shape: v.shape}
	case string:
		t, ok := f.host.Tensor(f.tensorName(v))
		if !ok {
			f.missing(f.tensorName(v))
		}
		of = t
	}
	if of.Shape == nil {
		f.fail("function shape needs the name of a tensor in quotes, or a weight that is stored")
	}
	if len(args) == 2 && args[1] != len(of.Shape) {
		f.fail("tensor %q: shape %v, want %s sizes", of.File, of.Shape, show(args[1]))
	}
	return f.plain(of.Shape)
}

// stored reports whether a tensor is stored, by its name, or a weight that may be absent.
func (f *frame) stored(e *syntax.Expr) any {
	switch {
	case len(e.Args) == 1 && e.Args[0].Kind == syntax.StringLit:
		_, ok := f.host.Tensor(f.std(e.Args[0]))
		return ok
	case len(e.Args) == 1 && e.Args[0].Kind == syntax.WeightRef:
		return truth(f.eval(e.Args[0]))
	}
	f.fail("function stored needs the name of a tensor in quotes, or a weight")
	return nil
}

// same reports whether two tensors are stored and not known to differ.
func (f *frame) same(name string, args []any) any {
	names, ok := listOf[string](args)
	if !ok || len(names) != 2 {
		f.fail("function %s needs the names of two tensors in quotes", name)
	}
	return f.host.Same(f.tensorName(names[0]), f.tensorName(names[1]))
}

// values returns the numbers of a stored tensor.
func (f *frame) values(name string, args []any) any {
	std, ok := only(args).(string)
	if !ok {
		f.fail("function %s needs the name of a tensor in quotes", name)
	}
	list, err := f.host.Values(f.tensorName(std))
	if err != nil {
		f.fail("%v", err)
	}
	return f.plain(list)
}

// required fails if a weight that may be absent is.
func (f *frame) required(name string, args []any) any {
	w, ok := only(args).(*weightVar)
	if !ok {
		f.fail("function %s needs a weight, such as @name", name)
	}
	if w.found == nil {
		f.missing(w.missing)
	}
	return true
}

// known records that the module knows a tensor that it does not read, and reports whether it
// is stored.
func (f *frame) known(e *syntax.Expr) any {
	if len(e.Args) != 1 || e.Args[0].Kind != syntax.StringLit {
		f.fail("function known needs the name of a tensor in quotes")
	}
	return f.host.Read(f.std(e.Args[0]))
}

// maxSize is the largest size: it keeps products of sizes inside an int.
const maxSize = 1 << 24

// size returns the size that a key of config.json states; None without the key, unless it is needed.
func (f *frame) size(e *syntax.Expr) any {
	if len(e.Args) < 1 || len(e.Args) > 2 || e.Args[0].Kind != syntax.ConfigRef {
		f.fail("function size needs a key of config.json, such as $hidden_size, and perhaps whether it is needed")
	}
	needed := len(e.Args) == 2 && truth(f.eval(e.Args[1]))
	v := f.eval(e.Args[0])
	n, ok := v.(int)
	wrong := ""
	switch {
	case v == nil && !needed:
		return nil
	case v == nil:
		wrong = "missing; give the value that the model was trained with under hyper:"
	case !ok:
		wrong = fmt.Sprintf("have %s, want one integer", show(v))
	case n < 1 || n > maxSize:
		wrong = fmt.Sprintf("have %d, want an integer from 1 to %d", n, maxSize)
	default:
		return n
	}
	err := f.error("hyper-parameter "+e.Args[0].Text[1:]+": "+wrong, "", e)
	err.Line = "" // says nothing more
	panic(failure{err})
}

// roundBF16 rounds to the precision of bf16.
func roundBF16(x float64) float64 {
	raw, out := make([]byte, 2), make([]float32, 1)
	if tensor.Encode(raw, tensor.BF16, []float32{float32(x)}) != nil || tensor.Decode(out, tensor.BF16, raw) != nil {
		return math.NaN()
	}
	return float64(out[0])
}
