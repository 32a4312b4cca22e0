package expand

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLimits checks that no text takes unbounded time or memory.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"steps":     {"module main() {\nn = 0\nfor i in range(60000) {\nfor j in range(60000) {\nn = j\n}\n}\nyield n\n}", "more than 1000000 steps"},
		"ops":       {"module main(%x) {\nfor i in range(60000) {\n%x = relu(silu(%x))\n}\nyield %x\n}", "more than 100000 ops"},
		"list":      {"module main() {\nl = [1] * 60000\nyield l + l\n}", "a list of more than 65536"},
		"repeat":    {"module main() {\nyield [1, 2] * 4000000000\n}", "a list of more than 65536"},
		"range":     {"module main() {\nyield range(1000000)\n}", "a list of more than 65536"},
		"memory":    {"module main() {\nyield [[1] * 60000 for i in range(60000)]\n}", "more than 1000000 steps"},
		"slopes":    {"module main() {\nyield [alibi_slopes(60000, 1) for i in range(60000)]\n}", "more than 1000000 steps"},
		"search":    {"module main() {\nl = range(60000)\nyield [-1 in l for i in l]\n}", "more than 1000000 steps"},
		"least":     {"module main() {\nl = range(60000)\nyield [min(l) for i in l]\n}", "more than 1000000 steps"},
		"settings":  {"module main() {\nyield [$long for i in range(60000)]\n}", "more than 1000000 steps"},
		"bind":      {"module main() {\nl = range(60000)\nfor i in l {\nm = l\n}\nyield m\n}", "more than 1000000 steps"},
		"flatten":   {"module main() {\n" + doubled("l = [1]", "l = [l, l]") + "yield flatten(l)\n}", "more than 1000000 steps"},
		"equal":     {"module main() {\n" + doubled("l = []\nm = []", "l = [l, l]\nm = [m, m]") + "yield l == m\n}", "more than 1000000 steps"},
		"show":      {"module main() {\n" + doubled("l = []", "l = [[l, l, l] for i in range(8)]") + "yield 1 // l\n}", "steps"},
		"transform": {"module main() {\nx = tensor(\"w\")\nfor i in range(40) {\nx = sub(x, x)\n}\nyield 1\n}", "more than 1000000 steps"},
		"recursion": {"module main() {\nyield f()\n}\nmodule f() {\nyield g()\n}\nmodule g() {\nyield f()\n}", "calls itself"},
		"depth":     {"module main() {\nyield " + strings.Repeat("(", 70) + "1" + strings.Repeat(")", 70) + "\n}", "nest deeper than 64"},
		"not":       {"module main() {\nyield " + strings.Repeat("not ", 5000) + "1\n}", "nest deeper than 64"},
		"chain":     {"module main() {\nyield 1" + strings.Repeat(" + 1", 5000) + "\n}", "more than 256 operators"},
		"text":      {"module main() {\nyield 1\n}\n" + strings.Repeat("#\n", 600000), "more than 1048576 bytes"},
		"number":    {"module main() {\nyield 9007199254740993 * 2\n}", "too large"},
		"calls":     {"module main() {\nyield f0()\n}" + chain(70), "nest deeper than 64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			if _, _, err := expanded(c.text, &testHost{config: map[string]any{"long": make([]int, 60000)}, tensors: map[string][]int{"w": {4, 4}, "dec.1.main.w": {4, 4}}}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

// doubled returns statements that double nested lists 40 times.
func doubled(first, next string) string { return first + strings.Repeat("\n"+next, 40) + "\n" }

// chain returns n modules of which each calls the next one.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\nmodule f%d() {\nyield f%d()\n}", i, i+1)
	}
	fmt.Fprintf(&b, "\nmodule f%d() {\nyield 1\n}", n)
	return b.String()
}
