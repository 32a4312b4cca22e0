package cost

import "math"

// A Range is an estimate with its bars.
type Range struct{ Low, Mid, High float64 }

// Sure is a number that is known.
func Sure(x float64) Range { return Range{x, x, x} }

// at returns the estimate when all goes badly (-1), as expected (0) or well (1).
func (r Range) at(luck int) float64 {
	switch luck {
	case -1:
		return r.Low
	case 1:
		return r.High
	}
	return r.Mid
}

// A Device computes. Reach is what of bandwidth and peak programs get.
type Device struct {
	Name   string
	Memory int64   // bytes that a model may take
	Read   float64 // bytes a second
	Peak   float64 // operations a second, two a multiply-add
	Reach  Range   // share of both
	Fixed  float64 // seconds a layer beside its work: launches, barriers
}

// A Style is how ranks of a tensor group exchange partial sums.
type Style int

// The styles. Direct: each rank reads what all others give, at once, as
// threads of a process and iflowc's MPI transport do. Ring: NCCL's all-reduce
// (2·(n−1) messages one after the other, each of an n-th). Hub: the first device
// collects and distributes, one message after the other, as Inferflow does.
const (
	Direct Style = iota
	Ring
	Hub
)

// A Link joins devices. Latency is of one message, from the wish to the data's
// use: worst case in Low.
type Link struct {
	Latency   Range   // seconds
	Bandwidth float64 // bytes a second, in one direction
	Style     Style
	Float     int // bytes of an exchanged number
}

// message returns the time of one message.
func (l Link) message(bytes float64, luck int) float64 {
	return l.Latency.at(luck) + bytes/l.Bandwidth
}

// exchange returns the time of an exchange in which each of n ranks gives so many
// numbers.
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
	return l.Latency.at(luck) + others*bytes/l.Bandwidth
}

// sends returns the number of bytes a rank puts on the wire in an exchange.
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

// A Machine is devices of one kind and what joins them.
type Machine struct {
	Devices []Device
	Group   Link // between ranks of a tensor group
	Border  Link // between stages
}

func power(x, n float64) float64 { return math.Pow(x, n) }
