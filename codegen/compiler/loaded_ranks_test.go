package compiler

import (
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/ranks"
)

// loadedRank is a rank of a program in memory.
type loadedRank struct {
	ranks.Rank
	weights []byte
}

// loadedProgram is a program on several devices, for ranks that are threads.
type loadedProgram struct {
	manifest *manifest.Manifest
	ranks    []loadedRank
}

func (p *loadedProgram) Manifest() *manifest.Manifest { return p.manifest }
func (p *loadedProgram) Hash() string                 { return "" }

func (p *loadedProgram) Shares() (list []*manifest.Manifest, err error) {
	for _, r := range p.ranks {
		list = append(list, r.Manifest)
	}
	return list, nil
}

func (p *loadedProgram) Rank(rank int, _ *ranks.Settings) (*ranks.Rank, error) {
	return &p.ranks[rank].Rank, nil
}

func (p *loadedProgram) Weights(rank int, _ *ranks.Settings) ([]byte, string, error) {
	return p.ranks[rank].weights, "", nil
}

// loadedRanks compiles and loads every rank of a program.
func loadedRanks(t *testing.T, p *Program) device.Device {
	t.Helper()
	return ranksOn(t, p, func(_ *Rank, lib *cpu.Library) device.Device { return lib })
}

// ranksOn is loadedRanks on other devices.
func ranksOn(t *testing.T, p *Program, deviceOf func(r *Rank, lib *cpu.Library) device.Device) device.Device {
	t.Helper()
	out := &loadedProgram{manifest: &p.whole.CPU.Manifest}
	out.manifest.Partition = &manifest.Partition{Devices: p.Model.Spec.Devices}
	for _, r := range p.ranks {
		man := &r.CPU.Manifest
		lib, mem := loadedCode(t, p, r.CPU)
		out.ranks = append(out.ranks, loadedRank{ranks.Rank{Manifest: man, Device: deviceOf(r, lib), Library: lib, Dispatch: tableOf(t, man.Matmuls, nil)}, mem})
		out.manifest.Partition.Ranks = append(out.manifest.Partition.Ranks, manifest.Rank{
			Device: r.Device, Stage: r.Stage, TPRank: r.TPRank, TPSize: r.TPSize, Lo: r.Lo, Hi: r.Hi})
	}
	e, err := ranks.Threads(out, ranks.Settings{Timeout: time.Hour}) // a loaded machine is no silent rank
	if err != nil {
		t.Fatal(err)
	}
	return e
}
