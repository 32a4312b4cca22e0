package devicetest

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// Open loads the fake model: its library, weights (every token depends on their
// first byte, salt), and the dispatch table of m's matmuls.
func Open(t testing.TB, m *manifest.Manifest, salt byte) (lib *cpu.Library, weights, table []byte) {
	t.Helper()
	lib, err := cpu.OpenFile("portable", Build(t))
	if err != nil {
		t.Fatal(err)
	}
	w, err := device.Map(1024, "weights")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Free)
	w.Bytes[0] = salt
	table, err = dispatch.Table(m.Matmuls, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lib, w.Bytes, table
}
