package cost

// Report returns the machine of Table 5 of the Inferflow report: four V100 on
// PCIe, with TP groups that merge through the first device, in F16. Two
// constants are not in the data sheets: the bandwidth utilization of its
// kernels and the time of a copy between two devices. Layer partition has no
// exchange, so its 8 tokens per second determine the first. Tensor partition
// determines the second. The hybrid partition is then a prediction.
func Report() *Machine {
	m, err := Known("4xv100")
	if err != nil {
		panic("bug: " + err.Error())
	}
	m.Group = Link{Latency: Range{90e-6, 72e-6, 60e-6}, Bandwidth: 12.5e9, Style: Hub, Float: 2}
	m.Border = m.Group
	for i := range m.Devices {
		m.Devices[i].Reach = Range{0.65, 0.73, 0.8}
	}
	return m
}

// ReportExchanges returns the exchanges of Inferflow's tensor partition: two
// merges of the whole hidden state per layer, even if attention and
// feed-forward network run in parallel and one would suffice.
func (c *Model) ReportExchanges() *Model {
	r := *c
	r.Layers, r.Head.Gathers = nil, nil
	for _, l := range c.Layers {
		l.Gives, l.Gathers = []int{c.Hidden, c.Hidden}, nil
		r.Layers = append(r.Layers, l)
	}
	r.Split = func(int) error { return nil }
	return &r
}

// A ReportRow is a row of Table 5: tokens per second of as many requests as
// there are groups, and of one.
type ReportRow struct {
	Name               string
	Stages, TPSize     int
	Throughput, Decode float64
}

// ReportRows are Table 5 (Falcon-40B, F16).
var ReportRows = []ReportRow{
	{"layer", 4, 1, 32, 8},
	{"tensor", 1, 4, 12, 12},
	{"hybrid", 2, 2, 24, 12},
}
