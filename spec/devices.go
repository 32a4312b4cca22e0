package spec

import (
	"fmt"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// A DevicePlan is a parsed device string: groups in layer order. The tensors of
// a group's layers are partitioned over its devices (tensor parallelism). A
// group's Share is its number of layers relative to the other groups.
type DevicePlan []DeviceGroup

// A DeviceGroup is one tensor-parallel group.
type DeviceGroup struct {
	Devices []Device
	Share   int
}

// A Device is an accelerator number on the target, or the host CPU.
type Device struct {
	CPU bool
	N   int
}

// devString is the grammar of device strings, Inferflow's with shares added.
// Groups separated by ";" or "," partition the layers; devices separated by "&"
// or "|" partition tensors; "0*2" assigns device 0 twice as many layers.
type devString struct {
	Groups []*devGroup `parser:"@@ ((';' | ',') @@)*"`
}

type devGroup struct {
	Devices []*devRank `parser:"@@ (('&' | '|') @@)*"`
	Share   *int       `parser:"('*' @Number)?"`
}

type devRank struct {
	Pos lexer.Position
	CPU bool `parser:"  @'cpu'"`
	N   *int `parser:"| @Number"`
}

var devParser = participle.MustBuild[devString](
	participle.Lexer(lexer.MustSimple([]lexer.SimpleRule{
		{Name: "Number", Pattern: `[0-9]{1,6}`},
		{Name: "Ident", Pattern: `[A-Za-z]+`},
		{Name: "Punct", Pattern: `[;,&|*]`},
		{Name: "Space", Pattern: `\s+`},
	})),
	participle.Elide("Space"),
)

// maxDevices is the most bytes of a device string: thousands of devices. Parsing takes a
// thousand times as much memory.
const maxDevices = 32 << 10

// ParseDevices parses a device string. Errors contain the column in the string.
func ParseDevices(s string) (DevicePlan, error) {
	if len(s) > maxDevices {
		return nil, fmt.Errorf("%.40q…: %d bytes; want at most %d", s, len(s), maxDevices)
	}
	d, err := devParser.ParseString("", s)
	if err != nil {
		return nil, grammarError(s, err, `want groups such as "0;1", "0&1;2&3", "cpu;0", "0*2;1"`)
	}
	var plan DevicePlan
	seen := map[Device]bool{}
	for _, g := range d.Groups {
		group := DeviceGroup{Share: 1}
		if g.Share != nil {
			group.Share = *g.Share
		}
		if group.Share < 1 {
			return nil, fmt.Errorf("%q: column %d: share %d; want at least 1", s, g.Devices[0].Pos.Column, group.Share)
		}
		for _, m := range g.Devices {
			dev := Device{CPU: m.CPU}
			if m.N != nil {
				dev.N = *m.N
			}
			if seen[dev] {
				return nil, fmt.Errorf("%q: column %d: device %v is listed twice", s, m.Pos.Column, dev)
			}
			seen[dev] = true
			group.Devices = append(group.Devices, dev)
		}
		plan = append(plan, group)
	}
	return plan, nil
}

// AutoDevices reports whether a device string leaves the choice to the compiler.
// The machine is "" for "auto", which means this one, and the part after the
// colon otherwise, as in "auto:8xh100".
func AutoDevices(s string) (machine string, ok bool) {
	s = strings.TrimSpace(s)
	if s == "auto" {
		return "", true
	}
	machine, ok = strings.CutPrefix(s, "auto:")
	return strings.TrimSpace(machine), ok
}

// String returns the device in the syntax of device strings.
func (d Device) String() string {
	if d.CPU {
		return "cpu"
	}
	return fmt.Sprint(d.N)
}

// String returns the plan in the syntax of device strings.
func (p DevicePlan) String() string {
	var groups []string
	for _, g := range p {
		var ds []string
		for _, d := range g.Devices {
			ds = append(ds, d.String())
		}
		s := strings.Join(ds, "&")
		if g.Share != 1 {
			s += fmt.Sprintf("*%d", g.Share)
		}
		groups = append(groups, s)
	}
	return strings.Join(groups, ";")
}

// grammarError converts a participle error to one line with a column.
func grammarError(s string, err error, want string) error {
	if pe, ok := err.(participle.Error); ok {
		return fmt.Errorf("%q: column %d: %s; %s", s, pe.Position().Column, pe.Message(), want)
	}
	return fmt.Errorf("%q: %v; %s", s, err, want)
}
