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

// waitFor waits for another rank's time.
func (c *clock) waitFor(t time.Time) {
	if t.After(c.at) {
		c.at = t
	}
}

// spend advances the time.
func (c *clock) spend(seconds float64) {
	c.at = c.at.Add(time.Duration(seconds * float64(time.Second)))
	if time.Until(c.at) > fine {
		c.wait()
	}
}

// wait sleeps until the machine's time reaches the rank's.
func (c *clock) wait() { time.Sleep(time.Until(c.at)) }

// A group connects the ranks of a stage: mail[i] has the send times of messages
// to rank i.
type group struct {
	link cost.Link
	mail []chan time.Time
}

func newGroup(link cost.Link, n int) *group {
	g := &group{link: link}
	for range n {
		g.mail = append(g.mail, make(chan time.Time, 2*n))
	}
	return g
}

// message returns the time of one message.
func (g *group) message(bytes float64) float64 { return g.link.Latency.Mid + bytes/g.link.Bandwidth }

// exchange is rank i's part of an exchange of this many bytes from each.
func (g *group) exchange(i int, c *clock, bytes float64) {
	n := len(g.mail)
	if n < 2 {
		return
	}
	switch g.link.Style {
	case cost.Ring:
		for range 2 * (n - 1) {
			g.mail[(i+1)%n] <- c.at
			c.waitFor(<-g.mail[i])
			c.spend(g.message(bytes / float64(n)))
		}
	case cost.Hub:
		g.hub(i, c, bytes)
	default:
		for j := range n {
			if j != i {
				g.mail[j] <- c.at
			}
		}
		for range n - 1 {
			c.waitFor(<-g.mail[i])
		}
		c.spend(g.link.Latency.Mid + float64(n-1)*bytes/g.link.Bandwidth)
	}
}

// hub: the first rank receives the messages one after another, and sends the
// sum to each one after another.
func (g *group) hub(i int, c *clock, bytes float64) {
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
		c.spend(g.message(bytes))
		g.mail[j] <- c.at
	}
}
