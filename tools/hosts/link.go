//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
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
	shape atomic.Pointer[Shape]
	ends  [2]*os.File
	bytes [2]atomic.Int64
}

// newLink connects two TUN devices.
func newLink(a, b *os.File) *Link {
	l := &Link{ends: [2]*os.File{a, b}}
	l.shape.Store(&Shape{})
	go l.carry(0)
	go l.carry(1)
	return l
}

// Set changes what the link does to packets that enter it from now on.
func (l *Link) Set(s Shape) { l.shape.Store(&s) }

// Bytes returns the bytes of the IP packets that host n has sent so far, delivered or not.
func (l *Link) Bytes(n int) int64 { return l.bytes[n].Load() }

// Close ends both directions.
func (l *Link) Close() {
	for _, f := range l.ends {
		f.Close()
	}
}

// A packet is in the link until it is due.
type packet struct {
	data []byte
	due  time.Time
}

// carry moves packets from one end to the other until the link is closed.
func (l *Link) carry(from int) {
	ahead := make(chan packet, 1<<14)
	defer close(ahead)
	go deliver(l.ends[1-from], ahead)
	var free time.Time // when the line has sent all packets before
	for {
		data := make([]byte, mtu)
		n, err := l.ends[from].Read(data)
		if err != nil {
			return
		}
		l.bytes[from].Add(int64(n))
		s, now := l.shape.Load(), time.Now()
		if s.Down || s.Loss > 0 && rand.Float64() < s.Loss {
			continue
		}
		if free.Before(now) {
			free = now
		}
		if s.Bandwidth > 0 {
			if free.Sub(now) > queueTime {
				continue
			}
			free = free.Add(time.Duration(float64(n) / s.Bandwidth * 1e9))
		}
		select {
		case ahead <- packet{data[:n], free.Add(s.Delay)}:
		default: // more than the buffer holds
		}
	}
}

// deliver writes packets when they are due. It sleeps by the system's clock, because
// Go's timers are only accurate to a millisecond when a program is otherwise idle.
func deliver(to *os.File, ahead <-chan packet) {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // nanoseconds
	for p := range ahead {
		for d := time.Until(p.due); d > 0; d = time.Until(p.due) {
			t := unix.NsecToTimespec(int64(d))
			unix.Nanosleep(&t, nil) // a signal only makes it look again
		}
		to.Write(p.data) // fails when the host is gone
	}
}
