//go:build unix

package main

import (
	"time"

	"github.com/iflowc/iflowc/passes/cost"
)

// A clock is a rank's time. It advances by the computing time, and the rank
// sleeps only when it is ahead by more than the resolution of the system's
// timers. So the total of thousands of short waits is right.
type clock struct{ at time.Time }

// fine is how far a clock may be ahead of the machine's.
const fine = 500 * time.Microsecond

// seconds returns a duration.
func seconds(t float64) time.Duration { return time.Duration(t * float64(time.Second)) }

// waitFor waits for another rank's time.
func (c *clock) waitFor(t time.Time) {
	if t.After(c.at) {
		c.at = t
	}
}

// spend advances the time.
func (c *clock) spend(t float64) {
	c.at = c.at.Add(seconds(t))
	if time.Until(c.at) > fine {
		c.wait()
	}
}

// wait sleeps until the machine's time reaches the rank's.
func (c *clock) wait() { time.Sleep(time.Until(c.at)) }

// A group connects the ranks of a stage: mail[i] has the arrival times of messages
// to rank i.
type group struct {
	link cost.Link
	here []int // by rank: ranks of the group in its host
	mail []chan time.Time
}

func newGroup(m *cost.Machine, s cost.Stage) *group {
	g := &group{link: m.Group}
	for _, r := range s.Ranks {
		n := 0
		for _, other := range s.Ranks {
			if m.Devices[r].Host == m.Devices[other].Host {
				n++
			}
		}
		if n < len(s.Ranks) {
			g.link = m.Network
		}
		g.here = append(g.here, n)
		g.mail = append(g.mail, make(chan time.Time, 2*len(s.Ranks)))
	}
	return g
}

// message returns the time of one message.
func (g *group) message(bytes float64) float64 {
	return g.link.Latency.Mid + bytes/g.link.Bandwidth + g.link.Way(bytes)
}

// exchange is rank i's part of an exchange of this many numbers from each.
func (g *group) exchange(i int, c *clock, floats float64) {
	n, bytes := len(g.mail), floats*float64(g.link.Float)
	switch {
	case n < 2:
	case g.link.Style == cost.Ring:
		g.ring(i, c, 2*(n-1), bytes/float64(n))
	case g.link.Style == cost.Hub:
		g.hub(i, c, bytes, bytes)
	default:
		g.direct(i, c, bytes)
	}
}

// gather is rank i's part of gathering this many numbers from each.
func (g *group) gather(i int, c *clock, floats float64) {
	n, bytes := len(g.mail), floats*float64(g.link.Float)
	switch {
	case n < 2:
	case g.link.Style == cost.Ring:
		g.ring(i, c, n-1, bytes)
	case g.link.Style == cost.Hub:
		g.hub(i, c, bytes, float64(n)*bytes)
	default:
		g.direct(i, c, bytes)
	}
}

// ring passes messages on, a number of times.
func (g *group) ring(i int, c *clock, times int, bytes float64) {
	for range times {
		g.mail[(i+1)%len(g.mail)] <- c.at
		c.waitFor(<-g.mail[i])
		c.spend(g.message(bytes))
	}
}

// direct sends to all others at once within a host. Between hosts, a rank handles
// one message after another, and connections share the host's bandwidth: all
// messages arrive with the last.
func (g *group) direct(i int, c *clock, bytes float64) {
	away, others := len(g.mail)-g.here[i], len(g.mail)-1
	sent := c.at
	if away > 0 {
		c.spend(float64(away) * (g.link.Latency.Mid + bytes*float64(g.here[i])/g.link.Bandwidth))
		sent = c.at.Add(seconds(g.link.Way(bytes)))
	}
	for j := range g.mail {
		if j != i {
			g.mail[j] <- sent
		}
	}
	for range others {
		c.waitFor(<-g.mail[i])
	}
	if away == 0 {
		c.spend(g.link.Latency.Mid + float64(others)*bytes/g.link.Bandwidth + g.link.Way(bytes))
	}
}

// hub: the first rank receives the messages one after another, and sends the
// result to each one after another.
func (g *group) hub(i int, c *clock, bytes, result float64) {
	if i > 0 {
		g.mail[0] <- c.at
		c.waitFor(<-g.mail[i])
		return
	}
	for range len(g.mail) - 1 {
		c.waitFor(<-g.mail[0])
		c.spend(g.message(bytes))
	}
	for j := 1; j < len(g.mail); j++ {
		c.spend(g.message(result))
		g.mail[j] <- c.at
	}
}
