//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A Shape is what a link does to packets in each direction. The zero value delivers them
// at once.
type Shape struct {
	Delay     time.Duration // one way
	Bandwidth float64       // bytes per second of IP packets; 0: not limited
	Loss      float64       // fraction of the packets that are dropped
	Down      bool          // all are dropped
}

// units are the bandwidth units of ParseShape, in bytes per second.
var units = []struct {
	name  string
	bytes float64
}{{"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8}, {"kbit", 1e3 / 8}}

// ParseShape parses a list such as "20ms,1Gbit,1%": a delay, a bandwidth and a loss, each
// at most once.
func ParseShape(text string) (s Shape, err error) {
	var delays, bandwidths, losses int
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		if x, ok := strings.CutSuffix(part, "%"); ok {
			if s.Loss, err = strconv.ParseFloat(x, 64); err != nil || !(s.Loss >= 0 && s.Loss <= 100) {
				return s, fmt.Errorf("link %q: loss %q: expected 0%% to 100%%", text, part)
			}
			s.Loss /= 100
			losses++
			continue
		}
		if b, ok := bandwidth(part); ok {
			s.Bandwidth = b
			bandwidths++
			continue
		}
		if s.Delay, err = time.ParseDuration(part); err != nil || s.Delay < 0 || s.Delay > time.Minute {
			return s, fmt.Errorf("link %q: %q: expected a delay (20ms), a bandwidth (1Gbit) or a loss (1%%)", text, part)
		}
		delays++
	}
	if max(delays, bandwidths, losses) > 1 {
		return s, fmt.Errorf("link %q: a value is given twice", text)
	}
	return s, nil
}

func bandwidth(text string) (float64, bool) {
	for _, u := range units {
		if x, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseFloat(x, 64)
			return n * u.bytes, err == nil && n > 0 && n < 1e6
		}
	}
	return 0, false
}

// mtu is the size of the largest packet: that of Ethernet's jumbo frames, so that this
// program keeps up with 10 Gbit/s.
const mtu = 9000

// queueTime limits the packets that wait for a link's bandwidth, as a router's buffer
// does.
const queueTime = 50 * time.Millisecond

// A Link carries packets between the network devices of two hosts.
type Link struct {
	shape  atomic.Pointer[Shape]
	ends   [2]*os.File
	bytes  [2]atomic.Int64
	closed atomic.Bool
	both   sync.WaitGroup
}

// newLink connects two TUN devices.
func newLink(a, b *os.File) *Link {
	l := &Link{ends: [2]*os.File{a, b}}
	l.shape.Store(&Shape{})
	for from := range l.ends {
		l.both.Go(func() { l.carry(from) })
	}
	return l
}

// Set changes what the link does to packets that enter it from now on.
func (l *Link) Set(s Shape) { l.shape.Store(&s) }

// Bytes returns the bytes of the IP packets that host n has sent so far, delivered or not.
func (l *Link) Bytes(n int) int64 { return l.bytes[n].Load() }

// Close ends both directions.
func (l *Link) Close() {
	l.closed.Store(true)
	l.both.Wait()
	for _, f := range l.ends {
		f.Close()
	}
}

// A packet is in the link until it is due.
type packet struct {
	data []byte
	due  time.Time
}

// A lane is one direction of a link.
type lane struct {
	to      int          // file descriptor
	free    time.Time    // when the line has sent all packets before
	ahead   chan packet  // packets that are not due yet
	waiting atomic.Int64 // their number
}

// lookAgain is how often a direction without packets looks whether the link is closed,
// in milliseconds.
const lookAgain = 100

// carry moves packets from one end to the other until the link is closed. It polls the
// device on a thread of its own: Go's poller would add the time of two thread switches.
func (l *Link) carry(from int) {
	urgent()
	n := &lane{to: int(l.ends[1-from].Fd()), ahead: make(chan packet, 1<<14)}
	defer close(n.ahead)
	go n.deliver()
	fd := int(l.ends[from].Fd())
	for !l.closed.Load() {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if k, err := unix.Poll(ready, lookAgain); k == 0 || err != nil {
			continue
		}
		data := make([]byte, mtu)
		k, err := unix.Read(fd, data)
		if err != nil {
			time.Sleep(lookAgain * time.Millisecond) // the host is gone
			continue
		}
		l.bytes[from].Add(int64(k))
		n.put(data[:k], l.shape.Load())
	}
}

// put sends a packet on its way, or drops it.
func (n *lane) put(data []byte, s *Shape) {
	now := time.Now()
	if s.Down || s.Loss > 0 && rand.Float64() < s.Loss {
		return
	}
	if n.free.Before(now) {
		n.free = now
	}
	if s.Bandwidth > 0 {
		if n.free.Sub(now) > queueTime {
			return
		}
		n.free = n.free.Add(time.Duration(float64(len(data)) / s.Bandwidth * 1e9))
	}
	p := packet{data, n.free.Add(s.Delay)}
	if n.waiting.Load() == 0 && p.due.Sub(now) < soon {
		p.write(n.to)
		return
	}
	n.waiting.Add(1)
	select {
	case n.ahead <- p:
	default: // more than the buffer holds
		n.waiting.Add(-1)
	}
}

// soon is a time that passes while another thread is woken.
const soon = 20 * time.Microsecond

// deliver writes packets when they are due. It sleeps by the system's clock, because
// Go's timers are only accurate to a millisecond when a program is otherwise idle.
func (n *lane) deliver() {
	urgent()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // nanoseconds
	for p := range n.ahead {
		p.write(n.to)
		n.waiting.Add(-1)
	}
}

// write waits until the packet is due and writes it to a host's device.
func (p packet) write(to int) {
	for d := time.Until(p.due); d > 0; d = time.Until(p.due) {
		t := unix.NsecToTimespec(int64(d))
		unix.Nanosleep(&t, nil) // a signal only makes it look again
	}
	unix.Write(to, p.data) // fails when the host is gone
}

// urgent gives this goroutine a thread that runs before those of the hosts, which may
// share its processor: a network is not slower because machines compute.
func urgent() {
	runtime.LockOSThread()
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 20}, 0) // without the right to, packets come later
}
