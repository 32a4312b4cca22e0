package cost_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/passes/cost"
)

// hosts returns machines of equal devices with a network of one second of work
// and three of delay for a message, and 40 bytes a second.
func hosts(t *testing.T, n, devices int, style cost.Style) *cost.Machine {
	t.Helper()
	dev := cost.Device{Name: "d", Memory: 1 << 40, Read: 1000, Peak: 1e12, Reach: cost.Sure(0.5)}
	one := &cost.Machine{Group: cost.Link{Latency: cost.Sure(1), Bandwidth: 40, Style: style, Float: 4}}
	one.Border = one.Group
	for range devices {
		one.Devices = append(one.Devices, dev)
	}
	m, err := one.Times(n, cost.Network{Bandwidth: 40, Delay: 3})
	if err != nil {
		t.Fatal(err)
	}
	m.Network.Latency, m.Control.Latency = cost.Sure(1), cost.Sure(1)
	return m
}

// TestHosts is arithmetic by hand. A layer takes 2 s. The step of one sequence is
// 96 bytes: rank 0 works 3.4 s on it, and another host has it after 6.4 s. A stage
// works 2 s on its result of 40 bytes, which arrives 3 s later. The step's result
// of 4 bytes takes 4.1 s.
func TestHosts(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Bytes: 1000, Read: 1000, MACs: 100, Gives: []int{10, 10}}
	c := &cost.Model{Name: "m", Layers: []cost.Part{layer, layer, layer, layer}, Hidden: 10}
	gathers := *c
	gathers.Head.Gathers = []int{20}
	for _, x := range []struct {
		what                              string
		model                             *cost.Model
		style                             cost.Style
		devices, stages, tpSize, together int
		one, all                          float64 // seconds of a sequence alone, and of all
	}{
		{"stages of 4 s", c, cost.Direct, 1, 2, 1, 2, 4 + 2 + 3 + 4 + 4.1, 4 + 2 + 3 + 4 + 4.1},
		{"and of four rows", c, cost.Direct, 1, 2, 1, 8, 17.1, 4 + 5 + 3 + 4 + 4.4},
		{"eight exchanges of 1 + 3 + 1 s", c, cost.Direct, 1, 1, 2, 1, 6.4 + 4*(1+2*5), 50.4},
		{"and a gathering as long", &gathers, cost.Direct, 1, 1, 2, 1, 50.4 + 5, 55.4},
		{"to two ranks: 2 + 3 + 4 s", c, cost.Direct, 2, 1, 4, 1, 2*3.4 + 3 + 4*(0.5+2*9), 83.8},
		{"groups of 10 s, two results of 40 bytes", c, cost.Direct, 2, 2, 2, 1, 10 + 3 + 3 + 10 + 4.1, 30.1},
		{"rings of two messages of 1 + 3 + ½ s", c, cost.Ring, 1, 1, 2, 1, 6.4 + 4*(1+2*9), 82.4},
		{"one host of two", c, cost.Direct, 2, 2, 1, 1, 4 + 2 + 4, 10},
	} {
		p := x.model.Predict(hosts(t, 2, x.devices, x.style), cost.Spread(4, x.stages, x.tpSize), cost.Load{Sequences: x.together})
		if one, all := 1/p.Decode.Mid, float64(x.together)/p.Throughput.Mid; math.Abs(one/x.one-1) > 1e-9 || math.Abs(all/x.all-1) > 1e-9 {
			t.Errorf("%s, %s: %v s of one and %v s of all; expected %v and %v", x.what, p.Plan, one, all, x.one, x.all)
		}
	}
}

// TestAnnounced: results and exchanges of 40 bytes are three times on the way if
// only 39 are sent at once.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Bytes: 1000, Read: 1000, MACs: 100, Gives: []int{10, 10}}
	c := &cost.Model{Name: "m", Layers: []cost.Part{layer, layer, layer, layer}, Hidden: 10}
	m := hosts(t, 2, 1, cost.Direct)
	for eager, want := range map[float64][2]float64{40: {17.1, 50.4}, 39: {17.1 + 6, 50.4 + 8*6}} {
		m.Network.Eager = eager
		for i, p := range []cost.Plan{cost.Spread(4, 2, 1), cost.Spread(4, 1, 2)} {
			if got := 1 / c.Predict(m, p, cost.Load{Sequences: 1}).Decode.Mid; math.Abs(got/want[i]-1) > 1e-9 {
				t.Errorf("%v bytes at once, %s: %v s, expected %v", eager, p, got, want[i])
			}
		}
	}
}

// TestOccupied: with a long way and many stages, the slowest stage and not the way
// bounds the throughput, because stages do not wait for what is on its way.
func TestOccupied(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Read: 1000, MACs: 1}
	c := &cost.Model{Name: "m", Layers: slices.Repeat([]cost.Part{layer}, 3), Hidden: 10}
	m := hosts(t, 3, 1, cost.Direct)
	c.Layers[1].Read = 10000
	p := c.Predict(m, cost.Spread(3, 3, 1), cost.Load{Sequences: 3})
	// stages of 2, 20 and 2 s, results of 2 s of work; round: 2 + 5 + 20 + 5 + 2 + 4.1 s
	if all := 3 / p.Throughput.Mid; math.Abs(all/(3*22)-1) > 1e-9 {
		t.Errorf("%v s for three sequences; expected 66", all)
	}
}

// TestOneHost: an exchange within a machine takes the delay of its link, too, and
// with more ranks than KV heads each rank reads a whole head.
func TestOneHost(t *testing.T) {
	t.Parallel()
	m := hosts(t, 2, 4, cost.Direct)
	m.Group.Delay = 3
	stage := cost.Spread(1, 1, 4)[0]
	for _, x := range []struct {
		layer cost.Part
		want  float64
	}{
		{cost.Part{Gives: []int{10}}, 1 + 3 + 3},
		{cost.Part{RowBytes: 1000, Heads: 2}, 1},
		{cost.Part{RowBytes: 1000, Heads: 8}, 0.5},
	} {
		if got := (&cost.Model{}).Layer(m, stage, x.layer, 1, 1, 0); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%+v takes %v s, expected %v", x.layer, got, x.want)
		}
	}
}

// TestShares holds what the ranks have of SmolLM2-135M to its sizes: of three KV
// heads one rank has two, and of the rest half.
func TestShares(t *testing.T) {
	t.Parallel()
	c := modelOf(t, "smollm2-135m-instruct")
	const d, ffn, kv = 576, 1536, 192
	all := float64(2*d*d + 2*kv*d + 3*d*ffn + 2*d)
	busiest := float64(2*d*d*2/3 + 2*kv*d*2/3 + 3*d*ffn/2 + 2*d)
	l := c.Layers[0]
	if got := l.Shares[2]; math.Abs(got/(busiest/all)-1) > 1e-9 {
		t.Errorf("the busiest of two ranks has %v of the weights; expected %v", got, busiest/all)
	}
	if !slices.Equal(l.Gives, []int{d, d}) || len(l.Gathers) > 0 || len(c.Head.Gives) > 0 || !slices.Equal(c.Head.Gathers, []int{49152}) {
		t.Errorf("a layer exchanges %v and gathers %v, the head %v and %v", l.Gives, l.Gathers, c.Head.Gives, c.Head.Gathers)
	}
	if err := c.Split(3); err != nil || math.Abs(l.Shares[3]-1.0/3) > 1e-3 {
		t.Errorf("each of three ranks has %v of the weights, %v", l.Shares[3], err)
	}
}

// TestUndivided: a division that leaves each rank all of every layer is none.
func TestUndivided(t *testing.T) {
	t.Parallel()
	m := published(t, "smollm2-135m-instruct")
	c, err := cost.Of(m, func(int) (*ir.Module, error) { return m, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3} {
		if err := c.Split(n); err == nil || !strings.Contains(err.Error(), "--after lower") {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// TestPlacements: groups within hosts come before those across, ranks are
// numbered host by host.
func TestPlacements(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Bytes: 1000, Read: 1000, MACs: 100, Gives: []int{10, 10}}
	c := &cost.Model{Name: "m", Layers: slices.Repeat([]cost.Part{layer}, 3), Hidden: 10, Split: func(int) error { return nil }}
	got, err := c.Choose(hosts(t, 2, 3, cost.Direct), cost.Load{Sequences: 1})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range got.Tried {
		text := r.Plan.String()
		if r.Across {
			text += " across"
		}
		list = append(list, text)
	}
	want := []string{"0", "0;1", "0;1;2", "0&1", "0&1;3&4", "0&1;2&3 across", "0&1;2&3;4&5 across", "0&1&2", "0&1&2;3&4&5",
		"0&1&2&3 across", "0&1&2&3&4 across", "0&1&2&3&4&5 across"}
	if !slices.Equal(list, want) {
		t.Errorf("tried\n%s\nexpected\n%s", strings.Join(list, "\n"), strings.Join(want, "\n"))
	}
}

// TestWhere: the explanation names the rank and the shard of each machine.
func TestWhere(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Bytes: 1e9, Read: 1e9, MACs: 100}
	c := &cost.Model{Name: "m", Layers: slices.Repeat([]cost.Part{layer}, 6), Hidden: 10}
	for _, x := range []struct {
		devices int
		memory  int64
		want    string
	}{
		{1, 7e9, "runs on one device of machine 0"},
		{1, 4e9, "machine 0          rank 0, weights BIN.weights.0of2\n  machine 1          rank 1, weights BIN.weights.1of2\n"},
		{2, 27e8, "machine 0          ranks 0 to 1, weights BIN.weights.0of3 to BIN.weights.1of3\n  machine 1          rank 2, weights BIN.weights.2of3\n"},
	} {
		m := hosts(t, 2, x.devices, cost.Direct)
		for i := range m.Devices {
			m.Devices[i].Memory = x.memory
		}
		load := cost.Load{Sequences: 1}
		got, err := c.Choose(m, load)
		if err != nil || !strings.Contains(got.Explain(load), x.want) {
			t.Errorf("%v, where\n%s\nexpected\n%s", err, got.Explain(load), x.want)
		}
	}
}

// TestUnequal fills a small device, a large one and a fast one as each can.
func TestUnequal(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Bytes: 100, Read: 100, MACs: 1}
	c := &cost.Model{Layers: slices.Repeat([]cost.Part{layer}, 10)}
	small, large := cost.Device{Memory: cost.Scratch + 299, Read: 1, Peak: 1e9, Reach: cost.Sure(1)}, cost.Device{Memory: 1 << 40, Read: 1, Peak: 1e9, Reach: cost.Sure(1)}
	fast := large
	fast.Read = 4
	for _, x := range []struct {
		devices []cost.Device
		want    string
	}{
		{[]cost.Device{large, large}, "0;1"},
		{[]cost.Device{small, large}, "0*2;1*8"},
		{[]cost.Device{fast, large}, "0*8;1*2"},
	} {
		m := &cost.Machine{Devices: x.devices, Group: cost.Link{Bandwidth: 1}, Border: cost.Link{Bandwidth: 1}}
		if p := c.Balance(m, cost.Spread(10, 2, 1), cost.Load{Sequences: 1}); p.String() != x.want {
			t.Errorf("%s, expected %s", p, x.want)
		}
	}
}
