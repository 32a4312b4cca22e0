package cost_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/passes/cost"
	"golang.org/x/tools/txtar"
)

// published reads the golden IR of a model of the library, at its real size.
func published(t testing.TB, name string) *ir.Module {
	t.Helper()
	data, err := os.ReadFile("../../models/testdata/library/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name == "out.ir" {
			m, err := ir.Parse(name, f.Data, ops.Table)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("%s has no IR", name)
	return nil
}

// modelOf reads its costs, and its exchanges from the pass partition.
func modelOf(t testing.TB, name string) *cost.Model {
	t.Helper()
	m := published(t, name)
	split := func(n int) (*ir.Module, error) {
		c := m.Clone()
		var group []passes.Device
		for range n {
			group = append(group, passes.Device{Name: "dev"})
		}
		return c, passes.Run(&passes.Env{Ops: ops.Table, Devices: [][]passes.Device{group}}, c, passes.Pipeline, passes.Options{Limit: -1, After: "partition"})
	}
	c, err := cost.Of(m, split)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSums compares with arithmetic on published sizes.
func TestSums(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name             string
		layers, hidden   int
		billions         float64 // of parameters, two bytes each
		active           float64 // of them, for one token, without the table
		rowBytes, attend float64 // a layer
	}{
		{"falcon-40b-instruct", 60, 8192, 41.30, 41.30, 2 * 2 * 8 * 64, 2 * 8192},
		{"llama3.3-70b-instruct", 80, 8192, 70.55, 69.50, 2 * 2 * 8 * 128, 2 * 8192},
		{"mixtral-8x7b-instruct", 32, 4096, 46.70, 12.75, 2 * 2 * 8 * 128, 2 * 4096},
	} {
		c := modelOf(t, x.name)
		macs := c.Head.MACs
		for _, l := range c.Layers {
			macs += l.MACs
		}
		l := c.Layers[len(c.Layers)-1]
		if len(c.Layers) != x.layers || c.Hidden != x.hidden || math.Abs(float64(c.Bytes())/2e9-x.billions) > 0.01 ||
			math.Abs(macs/1e9-x.active) > 0.05 || float64(l.RowBytes) != x.rowBytes || l.Attend != x.attend {
			t.Errorf("%s: %d layers, %d hidden, %.2f·10⁹ weights, %.2f·10⁹ multiply-adds, %d bytes a row, %.0f multiply-adds of attention",
				x.name, len(c.Layers), c.Hidden, float64(c.Bytes())/2e9, macs/1e9, l.RowBytes, l.Attend)
		}
	}
}

// TestReport holds the simulation of Table 5 to the report: each figure within
// 15 %, and the order of the three ways.
func TestReport(t *testing.T) {
	t.Parallel()
	c := modelOf(t, "falcon-40b-instruct").ReportExchanges()
	got := map[string]cost.Prediction{}
	for _, row := range cost.ReportRows {
		p := c.Predict(cost.Report(), cost.Spread(60, row.Stages, row.TPSize), cost.Load{Sequences: row.Stages, Context: 128})
		t.Logf("%-7s %.1f tok/s of one, %.1f of %d sequences; report %.0f, %.0f", row.Name, p.Decode.Mid, p.Throughput.Mid, row.Stages, row.Decode, row.Throughput)
		if math.Abs(p.Decode.Mid/row.Decode-1) > 0.15 || math.Abs(p.Throughput.Mid/row.Throughput-1) > 0.15 {
			t.Errorf("%s: decode %v, throughput %v; the report has %v and %v", row.Name, p.Decode, p.Throughput, row.Decode, row.Throughput)
		}
		if p.Decode.Low > row.Decode || p.Decode.High < row.Decode {
			t.Errorf("%s: %v tok/s is outside of the bars of %v", row.Name, row.Decode, p.Decode)
		}
		got[row.Name] = p
	}
	layer, tensor, hybrid := got["layer"], got["tensor"], got["hybrid"]
	if hybrid.Decode.Mid < 1.3*layer.Decode.Mid || hybrid.Throughput.Mid < 1.7*tensor.Throughput.Mid || layer.Throughput.Mid < 1.2*hybrid.Throughput.Mid {
		t.Error("hybrid is not ahead of layer in latency and of tensor in throughput, or layer not of all in throughput")
	}
}

// TestPredict is arithmetic by hand: a layer of 10 bytes a multiply-add.
func TestPredict(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Bytes: 1000, Read: 1000, MACs: 100, RowBytes: 4, Gives: []int{10, 10}}
	c := &cost.Model{Name: "m", Layers: []cost.Part{layer, layer, layer, layer}, Hidden: 10}
	dev := cost.Device{Name: "d", Memory: 1 << 40, Read: 1000, Peak: 1e12, Reach: cost.Range{Low: 0.25, Mid: 0.5, High: 1}}
	m := &cost.Machine{Devices: []cost.Device{dev, dev, dev, dev}, Group: cost.Link{Latency: cost.Sure(1), Bandwidth: 40, Float: 4}}
	m.Border = m.Group
	for _, x := range []struct {
		stages, tpSize, sequences int
		decode, throughput, sends float64
	}{
		{1, 1, 1, 1 / 8.0, 1 / 8.0, 0},                          // 4 layers of 2 s
		{2, 1, 2, 1 / 10.0, 2 / 12.0, 40},                       // and one message of 1 + 1 s: stages of 6 and 4 s
		{1, 2, 1, 1 / 20.0, 1 / 20.0, 8 * 40},                   // 1 s and two exchanges of 1 + 1 s
		{2, 2, 2, 1 / 22.0, 2 / 24.0, 4*40 + 40},                // stages of 12 and 10 s
		{1, 4, 1, 1 / (2 + 8*4.0), 1 / (2 + 8*4.0), 8 * 3 * 40}, // ½ s, exchanges of 1 + 3 s
	} {
		p := c.Predict(m, cost.Spread(4, x.stages, x.tpSize), cost.Load{Sequences: x.sequences})
		if math.Abs(p.Decode.Mid/x.decode-1) > 1e-9 || math.Abs(p.Throughput.Mid/x.throughput-1) > 1e-9 || p.Sends != x.sends {
			t.Errorf("%s: decode %v, throughput %v, %v bytes sent; expected %v, %v, %v", p.Plan, p.Decode.Mid, p.Throughput.Mid, p.Sends, x.decode, x.throughput, x.sends)
		}
		if p.Decode.Low >= p.Decode.Mid || p.Decode.High <= p.Decode.Mid {
			t.Errorf("%s: bars %v", p.Plan, p.Decode)
		}
	}
}

// TestBalance returns the stage of the head fewer layers, by the time it takes.
func TestBalance(t *testing.T) {
	t.Parallel()
	dev := cost.Device{Memory: 1 << 40, Read: 1, Peak: 1, Reach: cost.Sure(1)}
	m := &cost.Machine{Devices: []cost.Device{dev, dev, dev, dev, dev}}
	for _, x := range []struct {
		layers []float64
		head   float64
		stages int
		want   string
	}{
		{[]float64{1, 1, 1, 1}, 0, 2, "0;1"},
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, 2, "0*7;1*3"},
		{[]float64{1, 1, 1, 1}, 100, 3, "0;1;2"},
		{[]float64{5, 1, 1, 1, 1, 1}, 0, 2, "0*1;1*5"},
		{[]float64{1, 1, 1, 1, 1}, 0, 5, "0;1;2;3;4"},
		{[]float64{1, 2, 3}, 1, 1, "0"},
	} {
		c := &cost.Model{Head: cost.Part{Read: x.head}}
		for _, w := range x.layers {
			c.Layers = append(c.Layers, cost.Part{Read: w})
		}
		p := c.Balance(m, cost.Spread(len(c.Layers), x.stages, 1), cost.Load{})
		at := 0
		for _, s := range p {
			if s.Lo != at || s.Hi <= s.Lo {
				t.Errorf("%v: stages %+v", x.layers, p)
			}
			at = s.Hi
		}
		if p.String() != x.want || at != len(x.layers) {
			t.Errorf("%v and a head of %v: %s, expected %s", x.layers, x.head, p, x.want)
		}
	}
}

// TestChooseStages: where messages are dear and a device holds two layers of
// four, two stages give many sequences the most.
func TestChooseStages(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Bytes: 1000, Read: 1000, MACs: 100, Gives: []int{10, 10}}
	c := &cost.Model{Name: "m", Layers: []cost.Part{layer, layer, layer, layer}, Hidden: 10, Split: func(int) error { return nil }}
	dev := cost.Device{Name: "d", Memory: cost.Scratch + 2000, Read: 1000, Peak: 1e12, Reach: cost.Sure(0.5)}
	m := &cost.Machine{Devices: []cost.Device{dev, dev, dev, dev}, Group: cost.Link{Latency: cost.Sure(1), Bandwidth: 40, Float: 4}}
	m.Border = m.Group
	got, err := c.Choose(m, cost.Load{Sequences: 4})
	if err != nil || got.Plan.String() != "0;1" {
		t.Errorf("%v, %v; expected 0;1", got, err)
	}
	for i := range m.Devices {
		m.Devices[i].Memory -= 1500
	}
	if _, err := c.Choose(m, cost.Load{Sequences: 4}); err == nil || !strings.Contains(err.Error(), "fits in no arrangement") {
		t.Errorf("%v; expected that no arrangement fits", err)
	}
}

// TestChoose takes the arrangement that the load wants, and says what is missing
// where there is none.
func TestChoose(t *testing.T) {
	t.Parallel()
	big := modelOf(t, "llama3.3-70b-instruct")
	for _, x := range []struct {
		model   *cost.Model
		machine string
		load    cost.Load
		want    string
	}{
		{big, "8xh100", cost.Load{Sequences: 1, Context: 4096}, "0&1&2&3&4&5&6&7"},
		{big, "1xh200", cost.Load{Sequences: 1, Context: 4096}, "lacks"},
		{big, "4xrtx4090", cost.Load{Sequences: 1, Context: 4096}, "lacks"},
	} {
		m, err := cost.Known(x.machine)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x.model.Choose(m, x.load)
		switch {
		case err != nil && !strings.Contains(err.Error(), x.want):
			t.Errorf("%s on %s: %v", x.model.Name, x.machine, err)
		case err == nil:
			t.Logf("%s on %s\n%s", x.model.Name, x.machine, c.Explain(x.load))
			if c.Plan.String() != x.want {
				t.Errorf("%s on %s: %s, expected %s", x.model.Name, x.machine, c.Plan, x.want)
			}
		}
	}
	if m, err := cost.KnownAs(2, "NVIDIA GeForce RTX 4090"); err != nil || len(m.Devices) != 2 || m.Devices[0].Name != "rtx4090" {
		t.Errorf("two RTX 4090: %v, %v", m, err)
	}
	for _, bad := range []string{"", "8", "xh100", "0xh100", "8xtpu", "99999999xh100"} {
		if _, err := cost.Known(bad); err == nil || !strings.Contains(err.Error(), "rtx4090") {
			t.Errorf("machine %q: %v", bad, err)
		}
	}
}
