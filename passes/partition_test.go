package passes

import (
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
)

// TestHeadsOver: every query head is on one rank, which has its key head.
func TestHeadsOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, heads, kvHeads int }{
		{4, 32, 32}, {2, 9, 3}, {3, 9, 3}, {5, 9, 3}, {9, 9, 3}, {2, 71, 1}, {8, 71, 1}, {8, 32, 8}, {8, 16, 4}, {7, 12, 12},
	} {
		g, err := headsOver(c.n, c.heads, c.kvHeads)
		if err != nil {
			t.Fatal(err)
		}
		at, each := 0, c.heads/c.kvHeads
		for m := range c.n {
			q, kv := g.q[m], g.kv[m]
			if q.Lo != at || q.Len() < 1 || kv.Lo != q.Lo/each || kv.Hi != (q.Hi+each-1)/each {
				t.Errorf("%+v: rank %d has queries %v and keys %v", c, m, q, kv)
			}
			at = q.Hi
		}
		if at != c.heads {
			t.Errorf("%+v: %d heads are on ranks", c, at)
		}
		if g.q.width()%g.kv.width() != 0 {
			t.Errorf("%+v: ranks have up to %d queries on %d keys", c, g.q.width(), g.kv.width())
		}
	}
	if _, err := headsOver(5, 4, 2); err == nil || !strings.Contains(err.Error(), "4 heads cannot be divided among 5 devices") {
		t.Errorf("error %v", err)
	}
}

// TestByShares: runs are whole units in order, none empty, near their shares.
func TestByShares(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size, unit int
		shares     []float64
		want       []int
	}{
		{1536, 64, []float64{1, 1}, []int{768, 1536}},
		{1536, 32, []float64{1.29, 1}, []int{864, 1536}},
		{11008, 64, []float64{1, 1, 1, 1, 1, 1, 1, 1}, []int{1408, 2752, 4160, 5504, 6912, 8256, 9664, 11008}},
		{64, 16, []float64{1, 1000, 1}, []int{16, 48, 64}},
		{10, 1, []float64{0, 0, 1}, []int{1, 2, 10}},
	} {
		var ends []int
		for _, r := range byShares(c.size, c.unit, c.shares) {
			ends = append(ends, r.Hi)
		}
		if !slices.Equal(ends, c.want) {
			t.Errorf("%d in units of %d by %v: %v, expected %v", c.size, c.unit, c.shares, ends, c.want)
		}
	}
}

// TestAlike: runs of one length cover everything, each with something of its own.
func TestAlike(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4, 9, 64, 100, 805, 32000, 50257, 151936} {
		for n := 2; n*n <= size && n <= 8; n++ {
			c, end := alike(size, n), 0
			for i, r := range c {
				if r.Len() != c[0].Len() || r.Lo > end || r.Hi <= end {
					t.Errorf("%d over %d: rank %d has %v behind %d", size, n, i, r, end)
				}
				end = r.Hi
			}
			if end != size {
				t.Errorf("%d over %d: ends at %d", size, n, end)
			}
		}
	}
}

// TestTable4 is Table 4 of the Inferflow report: 40 layers and 32 heads on four
// devices, by layer and by tensor.
func TestTable4(t *testing.T) {
	t.Parallel()
	groups := [][]Device{{{Name: "dev0"}, {Name: "dev1"}}, {{Name: "dev2"}, {Name: "dev3"}}}
	annotation := placement(groups, borders(groups, 0, 40), 0, 40)
	g, err := headsOver(2, 32, 32)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		device string
		layers ir.Range // counted from 1 in the report
		heads  ir.Range
	}{
		{"dev0", ir.Range{Lo: 1, Hi: 20}, ir.Range{Lo: 1, Hi: 16}}, {"dev1", ir.Range{Lo: 1, Hi: 20}, ir.Range{Lo: 17, Hi: 32}},
		{"dev2", ir.Range{Lo: 21, Hi: 40}, ir.Range{Lo: 1, Hi: 16}}, {"dev3", ir.Range{Lo: 21, Hi: 40}, ir.Range{Lo: 17, Hi: 32}},
	} {
		for layer := range 40 {
			here := slices.Contains(strings.Split(annotation.Word(layer), "&"), c.device)
			if here != (layer+1 >= c.layers.Lo && layer+1 <= c.layers.Hi) {
				t.Errorf("layer %d on %s: %v", layer+1, c.device, here)
			}
		}
		m := int(c.device[3]-'0') % 2
		if g.q[m].Lo+1 != c.heads.Lo || g.q[m].Hi != c.heads.Hi {
			t.Errorf("%s has heads %d to %d", c.device, g.q[m].Lo+1, g.q[m].Hi)
		}
	}
}

// TestBorders: each group has a layer where there are as many, and shares are
// kept.
func TestBorders(t *testing.T) {
	t.Parallel()
	group := func(shares ...int) (out [][]Device) {
		for _, s := range shares {
			out = append(out, []Device{{Share: s}})
		}
		return out
	}
	for _, c := range []struct {
		groups [][]Device
		layers int
		want   []int
	}{
		{group(1, 1), 7, []int{0, 4}}, {group(2, 1), 30, []int{0, 20}}, {group(1, 1, 1, 1), 5, []int{0, 2, 3, 4}},
		{group(100, 1, 1), 3, []int{0, 1, 2}}, {group(1, 1, 1), 2, []int{0, 1}}, {group(1), 12, []int{0}},
	} {
		if got := borders(c.groups, 0, c.layers); !slices.Equal(got, c.want) {
			t.Errorf("%v over %d layers: %v, expected %v", c.groups, c.layers, got, c.want)
		}
	}
}

// TestKeepTogether: layers that share a state are in one group, if every group then
// still has a layer.
func TestKeepTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		firsts []int
		ties   []ir.Range
		want   []int
	}{
		{[]int{0, 18}, []ir.Range{{Lo: 13, Hi: 34}, {Lo: 14, Hi: 33}}, []int{0, 13}},
		{[]int{0, 18}, []ir.Range{{Lo: 18, Hi: 34}}, []int{0, 18}},
		{[]int{0, 4, 8}, []ir.Range{{Lo: 6, Hi: 9}, {Lo: 3, Hi: 5}}, []int{0, 3, 6}},
		{[]int{0, 9, 18, 27}, []ir.Range{{Lo: 13, Hi: 34}}, []int{0, 9, 18, 27}},
		{[]int{0, 3}, []ir.Range{{Lo: 0, Hi: 5}}, []int{0, 3}},
	} {
		if got := keepTogether(c.firsts, c.ties); !slices.Equal(got, c.want) {
			t.Errorf("%v with %v: %v, expected %v", c.firsts, c.ties, got, c.want)
		}
	}
}
