package ctext

import (
	"math"
	"testing"
)

// TestFolding: sums and products leave out what says nothing.
func TestFolding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{Plus("a", "0", "", "b"), "a + b"},
		{Plus("0", "0"), "0"},
		{Plus("own->row", Times("1", 0)), "own->row"},
		{Times("l", 1), "l"},
		{Times("l", 40), "l * INT64_C(40)"},
		{Times("0", 40), "0"},
		{Minus("l", 0), "l"},
		{Minus("l", 2), "(l - 2)"},
		{headAt("0", 16), "0"},
		{headAt("h", 16), "h * 16"},
	} {
		if c.got != c.want {
			t.Errorf("%q, expected %q", c.got, c.want)
		}
	}
}

// TestLiterals: literals read back as the same float32.
func TestLiterals(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		1: "1.0f", 1e-6: "9.99999997e-07f", 0.1: "0.100000001f", math.Inf(1): "INFINITY", math.Inf(-1): "-INFINITY",
	} {
		if got := Float(f); got != want {
			t.Errorf("%v is %s, expected %s", f, got, want)
		}
	}
	if got := Float(math.NaN()); got != "NAN" {
		t.Errorf("NaN is %s", got)
	}
}

// TestWriter: braces indent, tables stand in front, comments are wrapped and
// cannot end early.
func TestWriter(t *testing.T) {
	t.Parallel()
	w := NewWriter(1)
	w.P("for (;;) {")
	w.P("%s[i]++;", w.Table("int", "counts", Ints([]int{1, 2})))
	w.P("}")
	w.Comment("a */ b")
	const want = "  static const int counts[] = {1, 2};\n  for (;;) {\n    counts[i]++;\n  }\n  /* a * / b */\n"
	if got := w.String(); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}
