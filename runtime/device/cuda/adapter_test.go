//go:build unix

package cuda

import (
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// TestAdapterChanges checks which matmuls adapters change, in any layer and any part, and
// that only another union of them needs other graphs.
func TestAdapterChanges(t *testing.T) {
	plan := &manifest.CUDA{Adapted: [][]manifest.CUDASites{{{First: 0, Count: 2}, {First: 2, Count: 2}}, {{First: 4, Count: 1}}, {{First: 5, Count: 2}}}}
	if n := sitesOf(plan); n != 7 {
		t.Errorf("%d sites", n)
	}
	packed := func(sites ...int) *lora.Packed {
		p := &lora.Packed{Sites: make([]lora.PackedSite, 7)}
		for _, s := range sites {
			p.Sites[s].Rank = 8
		}
		return p
	}
	a := adapters{changed: make([]bool, len(plan.Adapted))}
	for i, c := range []struct {
		number int32
		packed *lora.Packed
		other  bool
		want   []bool
	}{
		{0, packed(), false, []bool{false, false, false}},
		{1, packed(3), true, []bool{true, false, false}},
		{device.MaxAdapters - 1, packed(0, 6), true, []bool{true, false, true}},
		{2, packed(5), false, []bool{true, false, true}},
		{1, nil, false, []bool{true, false, true}},
		{device.MaxAdapters - 1, packed(4), true, []bool{false, true, true}},
		{2, nil, true, []bool{false, true, false}},
		{device.MaxAdapters - 1, nil, true, []bool{false, false, false}},
	} {
		if other := a.set(c.number, changesOf(plan, c.packed)); other != c.other || !slices.Equal(a.changed, c.want) {
			t.Errorf("load %d: %v, another: %t", i, a.changed, other)
		}
	}
}
