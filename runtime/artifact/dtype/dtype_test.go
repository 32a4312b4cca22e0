package dtype

import (
	"strings"
	"testing"
)

// TestNames: every type's name reads back in any case, and Inferflow's other
// names mean types that there are.
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
	for _, unknown := range []string{"", "q9", "f32 ", "invalid", Type(200).String()} {
		if d, ok := Parse(unknown); ok {
			t.Errorf("%q: read as %s", unknown, d)
		}
	}
}
