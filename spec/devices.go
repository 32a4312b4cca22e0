package spec

import (
	"fmt"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// A DevicePlan is a parsed device string: groups in layer order; inside a
// group the layers' tensors are partitioned over its devices. A group's Share
// is its part of the layers relative to the others'.
type DevicePlan []DeviceGroup

// A DeviceGroup is one tensor group.
type DeviceGroup struct {
	Devices []Device
	Share   int
}

// A Device is a number on the target, or the CPU beside it.
type Device struct {
	CPU bool
	N   int
}

// The grammar of device strings (Inferflow's, with shares): groups by ";" or
// "," are a layer partition, devices by "&" or "|" a tensor partition, "0*2"
// gives device 0 twice the layers of another group.
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

// ParseDevices reads a device string. Errors give the column in the string.
func ParseDevices(s string) (DevicePlan, error) {
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
			return nil, fmt.Errorf("%q: column %d: a share of %d; want at least 1", s, g.Devices[0].Pos.Column, group.Share)
		}
		for _, m := range g.Devices {
			dev := Device{CPU: m.CPU}
			if m.N != nil {
				dev.N = *m.N
			}
			if seen[dev] {
				return nil, fmt.Errorf("%q: column %d: device %v is there twice", s, m.Pos.Column, dev)
			}
			seen[dev] = true
			group.Devices = append(group.Devices, dev)
		}
		plan = append(plan, group)
	}
	return plan, nil
}

// AutoDevices reports whether a device string leaves the choice to the compiler,
// and of which machine: "auto" of the one at hand, "auto:8xh100" of another.
func AutoDevices(s string) (machine string, ok bool) {
	s = strings.TrimSpace(s)
	if s == "auto" {
		return "", true
	}
	machine, ok = strings.CutPrefix(s, "auto:")
	return strings.TrimSpace(machine), ok
}

// String returns the device as it stands in a device string.
func (d Device) String() string {
	if d.CPU {
		return "cpu"
	}
	return fmt.Sprint(d.N)
}

// String returns the plan as a device string.
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

// grammarError turns a participle error into one line with a column.
func grammarError(s string, err error, want string) error {
	if pe, ok := err.(participle.Error); ok {
		return fmt.Errorf("%q: column %d: %s; %s", s, pe.Position().Column, pe.Message(), want)
	}
	return fmt.Errorf("%q: %v; %s", s, err, want)
}
