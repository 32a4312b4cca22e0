package cost

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MPIMessage is the time of a message of MPI over TCP besides the delay and the
// bandwidth of the network: what the library and the kernels of both machines
// need. Open MPI 4.1 on one machine, with `--mca btl tcp,self`: two processes that
// send each other 64 to 9216 bytes with MPI_Isend and MPI_Irecv and wait with
// MPI_Test took 6 to 10 µs (medians of three runs of 2000), the slowest tenth more
// than 20 µs. To measure it between two machines, subtract the delay that you name
// in --devices (half the round trip of ping) from the time of such an exchange, or
// from (ms per token of 0&1 − half of one process's) / exchanges per token. A link
// that a process emulates takes longer: with namespaces, TUN devices and three
// times as many busy programs as cores, the median was 100 µs (64 to 2304 bytes).
var MPIMessage = Range{20e-6, 10e-6, 6e-6}

// mpiEager is the size of the largest message that Open MPI sends over TCP without
// asking first (btl_tcp_eager_limit of 4.1).
const mpiEager = 64 << 10

// ncclMessage is that of NCCL between machines, estimated as that of a PCIe copy
// on the way to the network card (see known).
var ncclMessage = Range{15e-6, 8e-6, 5e-6}

// A Network connects machines.
type Network struct {
	Bandwidth float64 // bytes per second of a machine, in one direction
	Delay     float64 // seconds of a message, in one direction
}

// Kinds of machines besides those with data sheets.
const (
	Host = "host" // the memories of this machine
	GPU  = "gpu"  // the GPUs of this machine
)

// Named returns a machine, or several with their network: those of a file
// ("machines.yaml"), several equal ones ("2x8xh100,400Gbit,5us"), or one. one
// returns a single machine, such as Known.
func Named(text string, one func(kind string) (*Machine, error)) (*Machine, error) {
	if IsFile(text) {
		return ReadFile(text)
	}
	several, ok, err := ParseSeveral(text)
	if err != nil {
		return nil, err
	}
	if !ok {
		return one(text)
	}
	m, err := one(several.Machine)
	if err != nil {
		return nil, err
	}
	return m.Times(several.N, several.Network)
}

// Several describes several equal machines and their network.
type Several struct {
	N       int
	Machine string // Host, GPU, or a machine for Known
	Network
}

// severalForm shows how several machines are written.
const severalForm = "2xhost,25Gbit,50us or 2x8xh100,400Gbit,5us (machines, bandwidth and delay of the network in one direction)"

var severalMachines = regexp.MustCompile(`^([0-9]{1,6})x(host|gpu|[0-9]+x.*)$`)

// ParseSeveral parses several machines, such as "2xhost,25Gbit,50us". ok is false
// if the text has another form.
func ParseSeveral(text string) (s Several, ok bool, err error) {
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	m := severalMachines.FindStringSubmatch(parts[0])
	if m == nil && len(parts) == 1 {
		return s, false, nil
	}
	fail := func(format string, args ...any) (Several, bool, error) {
		return s, true, fmt.Errorf("machines %q: %s; expected, for example, %s", clip(text), fmt.Sprintf(format, args...), severalForm)
	}
	if m == nil {
		return fail("%q is not a number of machines and their kind", clip(parts[0]))
	}
	if len(parts) != 3 {
		return fail("the network's bandwidth and delay must follow, and nothing else")
	}
	s.Machine = m[2]
	if s.N, err = strconv.Atoi(m[1]); err != nil || s.N < 2 || s.N > most {
		return fail("have %s machines, want 2 to %d", m[1], most)
	}
	if s.Bandwidth, err = ParseBandwidth(parts[1]); err != nil {
		return fail("%v", err)
	}
	if s.Delay, err = ParseDelay(parts[2]); err != nil {
		return fail("%v", err)
	}
	return s, true, nil
}

// number is a decimal number without sign and exponent, before a unit.
var number = regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([a-zA-Zµ]+)(/s)?$`)

// A unit is a unit and its factor.
type unit struct {
	name   string
	factor float64
}

// Units of bandwidth, in bytes per second, and of delay, in seconds. A bit is an
// eighth of a byte, and all prefixes are decimal.
var (
	bandwidths = []unit{{"kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}
	delays     = []unit{{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}}
)

// Bounds of a network: a modem and a hundred of the fastest links; a signal around
// the earth many times.
const (
	leastBandwidth, mostBandwidth = 1e3, 1e14
	mostDelay                     = 10
)

// ParseBandwidth parses a bandwidth in one direction, such as "25Gbit" or
// "3.1GB/s", and returns bytes per second.
func ParseBandwidth(text string) (float64, error) {
	x, err := inUnits("bandwidth", "25Gbit", text, bandwidths, true)
	if err == nil && (x < leastBandwidth || x > mostBandwidth) {
		err = fmt.Errorf("bandwidth %s: want 1kB/s to 100TB/s", text)
	}
	return x, err
}

// ParseDelay parses the delay of a message in one direction, such as "50us", and
// returns seconds.
func ParseDelay(text string) (float64, error) {
	x, err := inUnits("delay", "50us", text, delays, false)
	if err == nil && x > mostDelay {
		err = fmt.Errorf("delay %s: want at most %ds", text, mostDelay)
	}
	return x, err
}

// inUnits parses a number with a unit.
func inUnits(what, example, text string, units []unit, perSecond bool) (float64, error) {
	m := number.FindStringSubmatch(text)
	var names []string
	for _, u := range units {
		if m != nil && m[2] == u.name && (perSecond || m[3] == "") {
			x, err := strconv.ParseFloat(m[1], 64)
			return x * u.factor, err
		}
		names = append(names, u.name)
	}
	return 0, fmt.Errorf("%s %q: expected a number and one of %s, such as %s", what, clip(text), strings.Join(names, ", "), example)
}

// clip shortens a text for an error message.
func clip(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// Times returns several machines like m with a network between them. Ranks on
// CPUs exchange by MPI, ranks on GPUs by NCCL.
func (m *Machine) Times(n int, net Network) (*Machine, error) {
	if n*len(m.Devices) > most {
		return nil, fmt.Errorf("%d machines of %d devices; want at most %d devices", n, len(m.Devices), most)
	}
	out := *m
	out.Devices, out.Hosts = nil, nil
	for host := range n {
		out.Hosts = append(out.Hosts, fmt.Sprintf("machine %d", host))
		for _, d := range m.Devices {
			d.Host = host
			out.Devices = append(out.Devices, d)
		}
	}
	out.connect(net)
	return &out, nil
}

// connect sets the links between hosts.
func (m *Machine) connect(net Network) {
	m.Network = Link{Latency: MPIMessage, Delay: net.Delay, Eager: mpiEager, Bandwidth: net.Bandwidth, Style: m.Group.Style, Float: m.Group.Float}
	m.Control = m.Network
	if m.Group.Style == Ring {
		m.Network.Latency, m.Network.Eager = ncclMessage, 0
	}
}
