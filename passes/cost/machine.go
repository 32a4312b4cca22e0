package cost

import "math"

// A Range is an estimate with bounds.
type Range struct{ Low, Mid, High float64 }

// Sure returns a Range for an exact number.
func Sure(x float64) Range { return Range{x, x, x} }

// at returns the lower bound (-1), the estimate (0) or the upper bound (1).
func (r Range) at(luck int) float64 {
	switch luck {
	case -1:
		return r.Low
	case 1:
		return r.High
	}
	return r.Mid
}

// A Device is a CPU or GPU. Reach is the fraction of bandwidth and peak that
// programs reach.
type Device struct {
	Name   string
	Host   int     // number of the machine that it is in, if there are several
	Memory int64   // bytes available to a model
	Read   float64 // bytes per second
	Peak   float64 // operations per second; a multiply-add is two
	Reach  Range   // fraction of both
	Fixed  float64 // seconds per layer besides its work: launches, barriers
}

// A Style is how ranks of a TP group exchange partial sums.
type Style int

// The styles. Direct: each rank reads the parts of all others at once, as
// threads of a process and iflowc's MPI transport do. Ring: NCCL's all-reduce
// (2·(n−1) messages in sequence, each of an n-th). Hub: the first device
// collects and distributes, one message after the other, as Inferflow does.
const (
	Direct Style = iota
	Ring
	Hub
)

// A Link connects devices. Latency is the time that a message takes besides its
// bytes while sender and receiver work on it, the worst case in Low. Delay is the
// time on the way, in which both may do other things.
type Link struct {
	Latency   Range   // seconds
	Delay     float64 // seconds, in one direction
	Eager     float64 // bytes; larger messages are announced first, and confirmed; 0: none is
	Bandwidth float64 // bytes per second, in one direction
	Style     Style
	Float     int // bytes of an exchanged number
}

// busy returns how long a message occupies its sender.
func (l Link) busy(bytes float64, luck int) float64 {
	return l.Latency.at(luck) + bytes/l.Bandwidth
}

// message returns the time of one message, from the start of the send to the use
// of the data.
func (l Link) message(bytes float64, luck int) float64 {
	return l.busy(bytes, luck) + l.Way(bytes)
}

// Way returns how long a message is on the way.
func (l Link) Way(bytes float64) float64 {
	if l.Eager > 0 && bytes > l.Eager {
		return 3 * l.Delay
	}
	return l.Delay
}

// exchange returns the time of an exchange to which each of n ranks contributes
// this many numbers.
func (l Link) exchange(n int, floats float64, luck int) float64 {
	if n < 2 {
		return 0
	}
	bytes, others := floats*float64(l.Float), float64(n-1)
	switch l.Style {
	case Ring:
		return 2 * others * l.message(bytes/float64(n), luck)
	case Hub:
		return 2 * others * l.message(bytes, luck)
	}
	return l.busy(others*bytes, luck) + l.Way(bytes)
}

// gather returns the time in which each of n ranks gets the numbers that the
// others have.
func (l Link) gather(n int, floats float64, luck int) float64 {
	bytes, others := floats*float64(l.Float), float64(n-1)
	switch {
	case n < 2:
		return 0
	case l.Style == Ring:
		return others * l.message(bytes, luck)
	case l.Style == Hub:
		return others * (l.message(bytes, luck) + l.message(float64(n)*bytes, luck))
	}
	return l.exchange(n, floats, luck)
}

// sends returns the bytes that a rank sends in an exchange.
func (l Link) sends(n int, floats float64) float64 {
	bytes, others := floats*float64(l.Float), float64(n-1)
	switch l.Style {
	case Ring:
		return 2 * others / float64(n) * bytes
	case Hub:
		return 2 * others / float64(n) * bytes // on average: the first sends to all, the others to it
	}
	return others * bytes
}

// A Machine is a number of devices and their links. If they are in several
// machines (hosts), they are numbered host by host.
type Machine struct {
	Devices []Device
	Group   Link     // between ranks of a TP group in a host
	Border  Link     // between stages in a host
	Network Link     // between ranks in different hosts
	Control Link     // between hosts, of rank 0's steps and of their results
	Hosts   []string // names of the hosts; none: one host
}

func power(x, n float64) float64 { return math.Pow(x, n) }
