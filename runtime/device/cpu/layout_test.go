//go:build unix

package cpu_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// TestLayout compares the mirrored structs with the layout of a C compiler: every
// offset, both sizes and the constants.
func TestLayout(t *testing.T) {
	t.Parallel()
	var c strings.Builder
	c.WriteString("#include <stddef.h>\n#include <stdio.h>\n#include \"ifl_step.h\"\nint main(void) {\n")
	var want strings.Builder
	for _, f := range cpu.Layout() {
		if f.Field == "" {
			fmt.Fprintf(&c, "printf(\"%s %%zu\\n\", sizeof(%s));\n", f.Struct, f.Struct)
			fmt.Fprintf(&want, "%s %d\n", f.Struct, f.Offset)
			continue
		}
		fmt.Fprintf(&c, "printf(\"%s.%s %%zu\\n\", offsetof(%s, %s));\n", f.Struct, f.Field, f.Struct, f.Field)
		fmt.Fprintf(&want, "%s.%s %d\n", f.Struct, f.Field, f.Offset)
	}
	c.WriteString("printf(\"%d %d %d %d %d\\n\", IFL_ABI, IFL_MAX_OUT, IFL_ROWS, IFL_TOP, IFL_CELL_ROWS);\n}\n")
	fmt.Fprintf(&want, "%d %d %d %d %d\n", device.ABI, device.MaxOut, device.DispatchRows, manifest.TopLogits, device.CellRows)
	if got := compileRun(t, c.String()); got != want.String() {
		t.Errorf("layout in C:\n%s\nin Go:\n%s", got, want.String())
	}
}
