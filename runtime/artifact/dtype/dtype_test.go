package dtype

import (
	"strings"
	"testing"
)

// TestNames checks that every type's name is parsed in any case and that aliases name
// existing types.
func TestNames(t *testing.T) {
	t.Parallel()
	for d := F32; d < Count; d++ {
		for _, name := range []string{d.String(), strings.ToUpper(d.String())} {
			if got, ok := Parse(name); !ok || got != d {
				t.Errorf("%s: read as %s, %v", name, got, ok)
			}
		}
		if d.Block() < 1 || d.BlockBytes() < 1 || d.IsBlock() != (d.Block() > 1) || d.IsBlock() && d.IsFloat() {
			t.Errorf("%s: blocks of %d elements in %d bytes", d, d.Block(), d.BlockBytes())
		}
		if n := 3 * d.Block(); d.RowBytes(n) != 3*d.BlockBytes() {
			t.Errorf("%s: %d bytes for %d elements", d, d.RowBytes(n), n)
		}
	}
	for alias, d := range aliases {
		if got, ok := Parse(alias); !ok || got != d || alias == d.String() {
			t.Errorf("%s: read as %s, %v; expected %s", alias, got, ok, d)
		}
	}
	for i, size := range Sizes {
		if got, ok := Parse(strings.ToUpper(size.Name)); !ok || got != size.Type {
			t.Errorf("%s: read as %s, %v; expected %s", size.Name, got, ok, size.Type)
		}
		if i > 0 && size.Type.Bits() >= Sizes[i-1].Type.Bits() {
			t.Errorf("%s takes %g bits, %s before it %g", size.Name, size.Type.Bits(), Sizes[i-1].Name, Sizes[i-1].Type.Bits())
		}
	}
	for d, want := range map[Type]float64{F32: 32, BF16: 16, Q8B32T2: 8.5, Q4B64: 4.5} {
		if d.Bits() != want {
			t.Errorf("%s: %g bits, want %g", d, d.Bits(), want)
		}
	}
	for _, unknown := range []string{"", "q9", "f32 ", "invalid", Type(200).String()} {
		if d, ok := Parse(unknown); ok {
			t.Errorf("%q: read as %s", unknown, d)
		}
	}
}

// TestOfHead checks that heads of every block type below 8 bits get one bit more, up to q8.
func TestOfHead(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"f16": "f16", "f32": "f32", "q8_b64": "q8_b64", "q8": "q8", "q6": "q8", "q5": "q6", "q4": "q5", "q3": "q4", "q2": "q3",
		"q5_b32": "q8", "q4_b32": "q6", "q4_b64": "q5", "q3h_b64": "q5", "q2_b32": "q4",
	} {
		d, _ := Parse(name)
		if h, _ := Parse(want); d.OfHead() != h {
			t.Errorf("%s: heads get %s, want %s", name, d.OfHead(), h)
		}
	}
}
