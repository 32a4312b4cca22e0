package compiler

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/tune"
	"github.com/iflowc/iflowc/templates"
)

// Measurements returns the profile that selects implementations, and its
// origin: the named one, else a shipped one for such a machine, else none.
func (m *Model) Measurements() (p *dispatch.Profile, origin string, err error) {
	return m.opt.Measurements()
}

func (o *Options) Measurements() (p *dispatch.Profile, origin string, err error) {
	if o.Profile != "" {
		p, err = dispatch.Read(o.Profile)
		if err != nil {
			return nil, "", InputError{err}
		}
		if p.OfGPU() {
			return nil, "", InputError{fmt.Errorf("%s was measured on a GPU, and the binary reads such a profile at its start: put it beside the binary as BIN%s, or pass it to the binary with --profile", o.Profile, binary.GPUProfile)}
		}
		return p, "profile " + o.Profile, nil
	}
	here, ok := machineHere()
	if !ok {
		return nil, "", nil
	}
	name, p, err := shipped(templates.Profiles(), here)
	if p == nil {
		return nil, "", err
	}
	return p, "shipped profile " + name + ", measured on " + p.Device, nil
}

// machineHere returns the fingerprint of this machine as in compiled models; ok
// is false when compiling for another architecture.
func machineHere() (dispatch.Machine, bool) {
	if arch := os.Getenv("GOARCH"); arch != "" && arch != runtime.GOARCH {
		return dispatch.Machine{}, false
	}
	isa, err := ISAHere("")
	if err != nil {
		return dispatch.Machine{}, false
	}
	m := tune.ThisMachine()
	m.Threads, m.ISA = cpu.DefaultThreads(), isa.Name
	return m, true
}

// shipped returns the shipped profile for such a machine.
func shipped(files map[string][]byte, here dispatch.Machine) (string, *dispatch.Profile, error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p, err := dispatch.Parse(name, files[name])
		if err != nil {
			return "", nil, err
		}
		if p.Machine != nil && tune.Matches(*p.Machine, here) {
			return name, p, nil
		}
	}
	return "", nil, nil
}
