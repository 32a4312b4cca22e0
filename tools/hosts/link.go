//go:build linux

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/passes/cost"
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

// ParseShape parses a list such as "20ms,1Gbit,1%": a delay, a bandwidth and a loss, each
// at most once.
func ParseShape(text string) (s Shape, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		what, err := s.set(part)
		if err == nil && seen[what] {
			err = fmt.Errorf("%q is a second %s", part, what)
		}
		if err != nil {
			return s, fmt.Errorf("link %q: %w", text, err)
		}
		seen[what] = true
	}
	return s, nil
}

// set sets one value and returns its name.
func (s *Shape) set(text string) (what string, err error) {
	if x, ok := strings.CutSuffix(text, "%"); ok {
		if s.Loss, err = strconv.ParseFloat(x, 64); err != nil || !(s.Loss >= 0 && s.Loss <= 100) {
			return "", fmt.Errorf("loss %q: expected 0%% to 100%%", text)
		}
		s.Loss /= 100
		return "loss", nil
	}
	if b, err := cost.ParseBandwidth(text); err == nil {
		s.Bandwidth = b
		return "bandwidth", nil
	}
	if d, err := cost.ParseDelay(text); err == nil {
		s.Delay = time.Duration(math.Round(d * 1e9))
		return "delay", nil
	}
	return "", fmt.Errorf("%q: expected a delay of at most 10s (20ms), a bandwidth (1Gbit) or a loss (1%%)", text)
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
	to    int       // file descriptor
	free  time.Time // when the line has sent all packets before
	ahead []packet  // those that are not due yet
}

// lookAgain is how often a direction without packets looks whether the link is closed.
const lookAgain = 100 * time.Millisecond

// carry moves packets from one end to the other until the link is closed. It waits for the
// device and for the next due packet in one system call, on a thread of its own: Go's
// poller and timers would add the time of thread switches, and milliseconds on busy
// cores.
func (l *Link) carry(from int) {
	urgent()
	n := &lane{to: int(l.ends[1-from].Fd())}
	fd := int(l.ends[from].Fd())
	for !l.closed.Load() {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		wait := unix.NsecToTimespec(int64(n.deliver()))
		if k, err := unix.Ppoll(ready, &wait, nil); k <= 0 || err != nil {
			continue
		}
		data := make([]byte, mtu)
		k, err := unix.Read(fd, data)
		if err != nil {
			time.Sleep(lookAgain) // the host is gone
			continue
		}
		n.put(time.Now(), data[:k], l.shape.Load())
	}
}

// put sends a packet on its way, or drops it.
func (n *lane) put(now time.Time, data []byte, s *Shape) {
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
	if len(n.ahead) < mostAhead {
		n.ahead = append(n.ahead, packet{data, n.free.Add(s.Delay)})
	}
}

// mostAhead limits the packets on the way: 10 Gbit/s for 100 ms.
const mostAhead = 1 << 14

// deliver writes the packets that are due, and returns the time until the next one is.
func (n *lane) deliver() time.Duration {
	i := 0
	for ; i < len(n.ahead); i++ {
		if d := time.Until(n.ahead[i].due); d > 0 {
			n.ahead = n.ahead[i:]
			return min(d, lookAgain)
		}
		unix.Write(n.to, n.ahead[i].data) // fails when the host is gone
	}
	n.ahead = n.ahead[:0]
	return lookAgain
}

// urgent gives this goroutine a thread that runs before those of the hosts, which may
// share its core: a network is not slower because machines compute.
func urgent() {
	runtime.LockOSThread()
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 20}, 0) // without the right to, packets come later
}
