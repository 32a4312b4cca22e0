package tensor

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"strings"
	"testing"
)

// TestGGUFBlocksAgainstReference checks that every GGUF block type decodes to the exact
// bits of the reference decoder named in testdata/gguf_blocks.txt.
func TestGGUFBlocksAgainstReference(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/gguf_blocks.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[DType]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "#" {
			continue
		}
		dt, ok := ParseDType(f[0])
		raw, err1 := hex.DecodeString(f[1])
		want, err2 := hex.DecodeString(f[2])
		if !ok || err1 != nil || err2 != nil || len(want) != 4*dt.Block() {
			t.Fatalf("bad line %.40s", line)
		}
		seen[dt] = true
		for i, x := range decode(t, dt, raw) {
			if w := math.Float32frombits(binary.BigEndian.Uint32(want[4*i:])); x != w {
				t.Fatalf("%s: element %d is %v, want %v", dt, i, x, w)
			}
		}
	}
	for _, dt := range fileTypes {
		if dt.IsBlock() && !seen[dt] {
			t.Errorf("no reference block of %s", dt)
		}
	}
}
