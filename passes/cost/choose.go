package cost

import (
	"fmt"
	"slices"
	"strings"
)

// A Choice is the plan of Choose and its alternatives.
type Choice struct {
	Prediction
	Tried []Prediction // all arrangements, including the chosen one
	No    []string     // why others are impossible
	Where string       // which ranks run on which host, if there are several; lines
}

// enough is the fraction of the best result at which an arrangement of fewer
// devices is preferred.
const enough = 0.97

// Choose compares all arrangements of the machine's devices in equal groups
// with balanced layers that fit into memory, and returns the fastest: by the
// tokens per second of one sequence if the load is one, else of all. Among
// nearly equal ones it returns the one with the fewest devices, and of as many
// the one whose groups are within hosts.
func (c *Model) Choose(m *Machine, load Load) (*Choice, error) {
	var out Choice
	var best *Prediction
	least := int64(-1)
	var tightest Plan
	for tpSize := 1; tpSize <= len(m.Devices); tpSize++ {
		if tpSize > 1 {
			if err := c.splits(tpSize); err != nil {
				out.No = append(out.No, fmt.Sprintf("groups of %d: %v", tpSize, err))
				continue
			}
		}
		for stages := 1; stages*tpSize <= len(m.Devices) && stages <= len(c.Layers); stages++ {
			for _, p := range m.placements(len(c.Layers), stages, tpSize) {
				r := c.Predict(m, c.Balance(m, p, load), load)
				out.Tried = append(out.Tried, r)
				if r.Missing > 0 {
					if least < 0 || r.Missing < least {
						least, tightest = r.Missing, r.Plan
					}
					continue
				}
				if best == nil || r.beats(best, load) {
					best = &r
				}
			}
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%s fits in no arrangement of the %d devices (%s): the best, %s, lacks %.1f GB on its fullest device; use a smaller weight type, a shorter context, fewer sequences or more devices",
			c.Name, len(m.Devices), m.memories(), tightest, float64(least)/gb)
	}
	out.Prediction, out.Where = *best, m.where(best.Plan)
	return &out, nil
}

// splits returns why a layer cannot be divided among n ranks.
func (c *Model) splits(n int) error {
	if c.Split == nil {
		return fmt.Errorf("the layers cannot be split")
	}
	return c.Split(n)
}

// gives returns the criterion of an arrangement.
func (r *Prediction) gives(load Load) float64 {
	if load.Sequences > 1 {
		return r.Throughput.Mid
	}
	return r.Decode.Mid
}

func (r *Prediction) devices() (n int) {
	for _, s := range r.Plan {
		n += len(s.Ranks)
	}
	return n
}

// beats reports whether r is the better arrangement.
func (r *Prediction) beats(o *Prediction, load Load) bool {
	mine, other := r.gives(load), o.gives(load)
	switch a, b := r.devices(), o.devices(); {
	case a > b:
		return mine*enough > other
	case a < b:
		return mine > other*enough
	}
	return mine > other
}

// Explain describes the comparison and the reason for the choice.
func (c *Choice) Explain(load Load) string {
	var b strings.Builder
	fmt.Fprintf(&b, "devices     %s, chosen for ", c.Plan)
	if load.Sequences > 1 {
		fmt.Fprintf(&b, "the throughput of %d sequences", load.Sequences)
	} else {
		b.WriteString("the speed of one sequence")
	}
	fmt.Fprintf(&b, " with %d tokens each\n", load.Context)
	Table(&b, c.Tried)
	if slices.ContainsFunc(c.Tried, func(r Prediction) bool { return r.Across }) {
		b.WriteString("  ⇄: a tensor-parallel group exchanges over the network\n")
	}
	for _, why := range c.No {
		fmt.Fprintf(&b, "  not possible: %s\n", why)
	}
	b.WriteString(c.Where)
	return b.String()
}

// Table prints predictions, one per line.
func Table(b *strings.Builder, list []Prediction) {
	fmt.Fprintf(b, "  %-20s %12s %26s %28s %14s\n", "devices", "GB each", "one sequence, tok/s", "all sequences, tok/s", "MB/token sent")
	for _, r := range list {
		if r.Missing > 0 {
			fmt.Fprintf(b, "  %-20s %12.1f %26s\n", r.brief(), float64(r.most())/gb, fmt.Sprintf("%.1f GB missing", float64(r.Missing)/gb))
			continue
		}
		fmt.Fprintf(b, "  %-20s %12.1f %26s %28s %14.2f\n", r.brief(), float64(r.most())/gb, r.Decode, r.Throughput, r.Sends/1e6)
	}
}

// brief abbreviates long plans and marks those with a group in several hosts.
func (r *Prediction) brief() string {
	text := r.Plan.String()
	if len(text) > 18 {
		text = fmt.Sprintf("%d stages of %d", len(r.Plan), len(r.Plan[0].Ranks))
	}
	if r.Across {
		text += " ⇄"
	}
	return text
}

func (r *Prediction) most() (n int64) {
	for _, x := range r.Need {
		n = max(n, x)
	}
	return n
}

// String returns the estimate with its bounds.
func (r Range) String() string {
	return fmt.Sprintf("%s (%s to %s)", digits(r.Mid), digits(r.Low), digits(r.High))
}

func digits(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2f", x)
	}
	if x < 100 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
