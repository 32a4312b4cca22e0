package cost

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// placements returns stages of this many ranks with layers by ceiling division:
// with each group in one host, if they have room, then on consecutive devices, if
// that differs. Ranks are numbered host by host.
func (m *Machine) placements(layers, stages, tpSize int) (list []Plan) {
	p, at := Spread(layers, stages, tpSize), 0
	within := slices.Clone(p)
	for i := range within {
		for at+tpSize <= len(m.Devices) && m.Devices[at].Host != m.Devices[at+tpSize-1].Host {
			at++
		}
		if at+tpSize > len(m.Devices) {
			return []Plan{p}
		}
		within[i].Ranks = nil
		for range tpSize {
			within[i].Ranks = append(within[i].Ranks, at)
			at++
		}
	}
	if slices.EqualFunc(p, within, func(a, b Stage) bool { return slices.Equal(a.Ranks, b.Ranks) }) {
		return []Plan{p}
	}
	return []Plan{within, p}
}

// where describes which ranks of a plan run on which host, and with which weights.
func (m *Machine) where(p Plan) string {
	if len(m.Hosts) < 2 {
		return ""
	}
	var hosts []int
	for _, s := range p {
		for _, d := range s.Ranks {
			hosts = append(hosts, m.Devices[d].Host)
		}
	}
	if len(hosts) == 1 {
		return fmt.Sprintf("  the whole model runs on one device of %s: start one process\n", m.Hosts[hosts[0]])
	}
	var b strings.Builder
	b.WriteString("  which rank runs where, in the order of the hostfile:\n")
	for first := 0; first < len(hosts); {
		host, end := hosts[first], first
		for end < len(hosts) && hosts[end] == host {
			end++
		}
		if last := end - 1; last == first {
			fmt.Fprintf(&b, "  %-18s rank %d, weights BIN.weights.%dof%d\n", m.Hosts[host], first, first, len(hosts))
		} else {
			fmt.Fprintf(&b, "  %-18s ranks %d to %d, weights BIN.weights.%dof%d to BIN.weights.%dof%d\n", m.Hosts[host], first, last, first, len(hosts), last, len(hosts))
		}
		first = end
	}
	return b.String()
}

// memories describes the memory of the devices.
func (m *Machine) memories() string {
	least, most := m.Devices[0].Memory, m.Devices[0].Memory
	for _, d := range m.Devices {
		least, most = min(least, d.Memory), max(most, d.Memory)
	}
	if least == most {
		return fmt.Sprintf("%.1f GB each", float64(least)/gb)
	}
	return fmt.Sprintf("%.1f to %.1f GB", float64(least)/gb, float64(most)/gb)
}

// A crossing describes a group of ranks in several hosts.
type crossing struct {
	remote  int // ranks in other hosts than a rank, at most
	through int // messages that a host sends if each rank sends one to each rank of other hosts, at most
}

// crosses counts the messages of a group between hosts; zero: it is in one host.
func (m *Machine) crosses(ranks []int) (x crossing) {
	for i := 0; i < len(ranks); {
		host, here := m.Devices[ranks[i]].Host, 0
		for ; i < len(ranks) && m.Devices[ranks[i]].Host == host; i++ {
			here++
		}
		away := len(ranks) - here
		x.remote, x.through = max(x.remote, away), max(x.through, here*away)
	}
	return x
}

// Exchange returns the time of an exchange to which each rank of a stage
// contributes this many numbers. If the stage is in several hosts, every step of
// a ring waits for the network, and the ranks of a host share its bandwidth.
func (m *Machine) Exchange(s Stage, floats float64, luck int) float64 {
	return m.collective(Link.exchange, s, floats, luck)
}

// Gather returns the time in which each rank of a stage gets the numbers that the
// others have.
func (m *Machine) Gather(s Stage, floats float64, luck int) float64 {
	return m.collective(Link.gather, s, floats, luck)
}

// collective returns the time of an exchange or a gathering on the ranks of a stage.
func (m *Machine) collective(on func(l Link, n int, floats float64, luck int) float64, s Stage, floats float64, luck int) float64 {
	n, x := len(s.Ranks), m.crosses(s.Ranks)
	switch {
	case x.remote == 0:
		return on(m.Group, n, floats, luck)
	case m.Network.Style == Direct:
		return m.Network.all(x, floats, luck)
	}
	return on(m.Network, n, floats, luck)
}

// all returns the time in which every rank sends its numbers to every rank of
// another host. A rank handles one message after another; all are on the way at
// once.
func (l Link) all(x crossing, floats float64, luck int) float64 {
	bytes := floats * float64(l.Float)
	return float64(x.remote)*l.Latency.at(luck) + l.Way(bytes) + float64(x.through)*bytes/l.Bandwidth
}

// HandOn returns how long a stage needs to send its result to the next one, and
// how long the result is then on the way. Each rank sends it to one rank.
func (m *Machine) HandOn(p Plan, i int, bytes float64, luck int) (busy, delay float64) {
	through, most, host := 0, 0, -1
	for j, r := range p[i].Ranks {
		from, to := m.Devices[r].Host, m.Devices[p[i+1].Ranks[j]].Host
		if from != host {
			through, host = 0, from
		}
		if from != to {
			through++
			most = max(most, through)
		}
	}
	if most == 0 {
		return m.Border.busy(bytes, luck), m.Border.Delay
	}
	return m.Network.busy(float64(most)*bytes, luck), m.Network.Way(bytes)
}

// Told returns when the last rank of a stage has a step, after its start on rank
// 0, which sends it to every other rank. Ranks of one host get it at once.
func (m *Machine) Told(p Plan, i int, rows float64, context, luck int) float64 {
	first, others, away := m.Devices[p[0].Ranks[0]].Host, 0, false
	for j, s := range p {
		for _, r := range s.Ranks {
			if m.Devices[r].Host != first {
				others, away = others+1, away || j == i
			}
		}
	}
	if !away {
		return 0
	}
	bytes := stepBytes(p, rows, context)
	return float64(others)*m.Control.busy(bytes, luck) + m.Control.Way(bytes)
}

// Answer returns how long a step's results take to rank 0, if it does not compute
// them itself.
func (m *Machine) Answer(p Plan, rows float64, luck int) float64 {
	from := p[len(p)-1].Ranks[0]
	if m.Devices[from].Host == m.Devices[p[0].Ranks[0]].Host {
		return 0
	}
	return m.Control.message(rows*resultBytes, luck)
}

// Sizes of what rank 0 and the others send each other (runtime/device/ranks). A
// step's message has its counts, ten words for each row of a sequence that decodes,
// and the pages of the sequence's KV cache. With several stages, another word says how
// the token is chosen, if greedily. A result is a token.
const (
	stepHead    = 13 * 4
	stepRow     = 10 * 4
	choiceBytes = 4
	pageRows    = 64
	resultBytes = 4
)

// stepBytes returns the bytes of the message of a step in which this many
// sequences decode.
func stepBytes(p Plan, rows float64, context int) float64 {
	row := stepRow + 4*math.Ceil(float64(context+1)/pageRows)
	if len(p) > 1 {
		row += choiceBytes
	}
	return stepHead + rows*row
}
