package cost

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/regular"
	"gopkg.in/yaml.v3"
)

// maxFile is the maximum size of a file of machines, in bytes.
const maxFile = 1 << 20

// IsFile reports whether Named reads a machine from a file.
func IsFile(text string) bool {
	return strings.HasSuffix(text, ".yaml") || strings.HasSuffix(text, ".yml")
}

// ReadFile reads a file of machines.
func ReadFile(path string) (*Machine, error) {
	text, err := regular.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	return ParseFile(path, text)
}

// ParseFile parses a file of machines: YAML with the keys of fileKeys. An unknown
// key is an error. Errors contain the line.
func ParseFile(name string, text []byte) (*Machine, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &fileParser{name: name}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s is empty; expected transport, network and machines", name)
	}
	root := doc.Content[0]
	if err := p.keys(root, fileKeys); err != nil {
		return nil, err
	}
	return p.finish(root)
}

// A fileParser collects what a file says. Its current machine and device are the
// last ones.
type fileParser struct {
	name     string
	ring     bool
	network  Network
	link     Network
	machines []hostEntry
	at       *Network   // the link being read
	device   *fileEntry // the device being read
}

// A hostEntry is some equal machines.
type hostEntry struct {
	name    string
	count   int
	devices []fileEntry
}

// A fileEntry is some equal devices.
type fileEntry struct {
	count              int
	memory, read, peak float64 // bytes, bytes per second, operations per second
}

// A fileKey is a key with the function that reads its value.
type fileKey struct {
	name     string
	required bool
	read     func(p *fileParser, at *yaml.Node) error
}

// The keys of a file, of a link, of a machine and of a device.
var (
	fileKeys    = []fileKey{{"transport", true, (*fileParser).readTransport}, {"network", false, readLink(networkOf)}, {"link", false, readLink(linkOf)}, {"machines", true, (*fileParser).readMachines}}
	linkKeys    = []fileKey{{"bandwidth", true, (*fileParser).readBandwidth}, {"delay", true, (*fileParser).readDelay}}
	machineKeys = []fileKey{{"name", false, (*fileParser).readName}, {"count", false, (*fileParser).readMachineCount}, {"devices", true, (*fileParser).readDevices}}
	deviceKeys  = []fileKey{
		{"count", false, func(p *fileParser, at *yaml.Node) error { return p.whole(at, "count", &p.device.count) }},
		{"memory_gb", true, func(p *fileParser, at *yaml.Node) error { return p.amount(at, "memory_gb", 1e9, &p.device.memory) }},
		{"read_gb_s", true, func(p *fileParser, at *yaml.Node) error { return p.amount(at, "read_gb_s", 1e9, &p.device.read) }},
		{"tflops", true, func(p *fileParser, at *yaml.Node) error { return p.amount(at, "tflops", 1e12, &p.device.peak) }},
	}
)

func (p *fileParser) fail(at *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.name, at.Line, fmt.Sprintf(format, args...))
}

// keys reads a mapping.
func (p *fileParser) keys(n *yaml.Node, known []fileKey) error {
	var names []string
	for _, k := range known {
		names = append(names, k.name)
	}
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "expected the keys %s", strings.Join(names, ", "))
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		k := slices.Index(names, at.Value)
		if k < 0 || at.Kind != yaml.ScalarNode {
			return p.fail(at, "unknown key %q; expected %s", clip(at.Value), strings.Join(names, ", "))
		}
		if seen[at.Value] {
			return p.fail(at, "duplicate key %q", at.Value)
		}
		seen[at.Value] = true
		if err := known[k].read(p, value); err != nil {
			return err
		}
	}
	for _, k := range known {
		if k.required && !seen[k.name] {
			return p.fail(n, "the key %s is missing", k.name)
		}
	}
	return nil
}

// list reads a sequence with at least one entry.
func (p *fileParser) list(n *yaml.Node, what string, read func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return p.fail(n, "%s: expected a list", what)
	}
	for _, e := range n.Content {
		if err := read(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *fileParser) readTransport(at *yaml.Node) error {
	if at.Kind != yaml.ScalarNode || at.Value != "mpi" && at.Value != "nccl" {
		return p.fail(at, "transport: expected mpi (ranks on CPUs) or nccl (on GPUs), found %q", clip(at.Value))
	}
	p.ring = at.Value == "nccl"
	return nil
}

func networkOf(p *fileParser) *Network { return &p.network }
func linkOf(p *fileParser) *Network    { return &p.link }

// readLink returns a function that reads a bandwidth and a delay.
func readLink(of func(*fileParser) *Network) func(*fileParser, *yaml.Node) error {
	return func(p *fileParser, at *yaml.Node) error {
		p.at = of(p)
		return p.keys(at, linkKeys)
	}
}

func (p *fileParser) readBandwidth(at *yaml.Node) (err error) {
	if p.at.Bandwidth, err = ParseBandwidth(at.Value); err != nil {
		return p.fail(at, "%v", err)
	}
	return nil
}

func (p *fileParser) readDelay(at *yaml.Node) (err error) {
	if p.at.Delay, err = ParseDelay(at.Value); err != nil {
		return p.fail(at, "%v", err)
	}
	return nil
}

func (p *fileParser) readMachines(at *yaml.Node) error {
	return p.list(at, "machines", func(n *yaml.Node) error {
		if len(p.machines) == most {
			return p.fail(n, "machines: more than %d", most)
		}
		p.machines = append(p.machines, hostEntry{count: 1})
		return p.keys(n, machineKeys)
	})
}

func (p *fileParser) machine() *hostEntry { return &p.machines[len(p.machines)-1] }

func (p *fileParser) readName(at *yaml.Node) error {
	plain := func(r rune) bool { return r > ' ' && r < 0x7f }
	if at.Kind != yaml.ScalarNode || at.Value == "" || len(at.Value) > 64 || strings.ContainsFunc(at.Value, func(r rune) bool { return !plain(r) }) {
		return p.fail(at, "name: expected 1 to 64 ASCII characters without spaces")
	}
	for _, m := range p.machines {
		if m.name == at.Value {
			return p.fail(at, "name: %s is another machine", at.Value)
		}
	}
	p.machine().name = at.Value
	return nil
}

func (p *fileParser) readMachineCount(at *yaml.Node) error {
	return p.whole(at, "count", &p.machine().count)
}

func (p *fileParser) readDevices(at *yaml.Node) error {
	return p.list(at, "devices", func(n *yaml.Node) error {
		m := p.machine()
		m.devices = append(m.devices, fileEntry{count: 1})
		p.device = &m.devices[len(m.devices)-1]
		return p.keys(n, deviceKeys)
	})
}

// whole reads a number of machines or devices.
func (p *fileParser) whole(at *yaml.Node, name string, to *int) error {
	n, err := strconv.Atoi(at.Value)
	if at.Kind != yaml.ScalarNode || err != nil || n < 1 || n > most {
		return p.fail(at, "%s: expected a whole number from 1 to %d, found %q", name, most, clip(at.Value))
	}
	*to = n
	return nil
}

// amount reads a positive number in a unit.
func (p *fileParser) amount(at *yaml.Node, name string, unit float64, to *float64) error {
	x, err := strconv.ParseFloat(at.Value, 64)
	if at.Kind != yaml.ScalarNode || err != nil || !(x >= 1e-3 && x <= 1e6) {
		return p.fail(at, "%s: expected a number from 0.001 to 1000000, found %q", name, clip(at.Value))
	}
	*to = x * unit
	return nil
}

// finish returns the machine after all keys have been read.
func (p *fileParser) finish(root *yaml.Node) (*Machine, error) {
	m, proto := &Machine{Group: Link{Latency: ncclMessage, Style: Ring, Float: 4}}, gpu
	if !p.ring {
		m.Group, proto = threads, cpu
	}
	m.Group.Bandwidth, m.Group.Delay = p.link.Bandwidth, p.link.Delay
	m.Border = m.Group
	largest := 0
	for _, h := range p.machines {
		for range h.count {
			before := len(m.Devices)
			if err := p.add(m, h, proto, root); err != nil {
				return nil, err
			}
			largest = max(largest, len(m.Devices)-before)
		}
	}
	if largest > 1 && p.link.Bandwidth == 0 {
		return nil, p.fail(root, "the key link is missing: a machine has %d devices; add link: {bandwidth: 10GB, delay: 0us}", largest)
	}
	if len(m.Hosts) > 1 && p.network.Bandwidth == 0 {
		return nil, p.fail(root, "the key network is missing: there are %d machines; add network: {bandwidth: 25Gbit, delay: 50us}", len(m.Hosts))
	}
	m.connect(p.network)
	return m, nil
}

// add appends a machine's devices.
func (p *fileParser) add(m *Machine, h hostEntry, proto Device, root *yaml.Node) error {
	host := len(m.Hosts)
	name := fmt.Sprintf("machine %d", host)
	if h.name != "" {
		name = h.name
		if h.count > 1 {
			name += fmt.Sprintf("-%d", host)
		}
	}
	m.Hosts = append(m.Hosts, name)
	for _, e := range h.devices {
		if len(m.Devices)+e.count > most {
			return p.fail(root, "machines: more than %d devices", most)
		}
		for range e.count {
			d := proto
			d.Name, d.Host, d.Memory, d.Read, d.Peak = name, host, int64(e.memory), e.read, e.peak
			m.Devices = append(m.Devices, d)
		}
	}
	return nil
}
