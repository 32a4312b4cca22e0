//go:build unix

// Package ranks runs a partitioned model. Each rank has its own device, weights and KV
// cache, and all ranks run every step together. The ranks are threads of one process
// (ThreadGroup) or processes of a job that a launcher started (Job). In a job, rank 0
// is the Leader and the others are workers.
package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// Settings configure the ranks. In an MPI job all ranks use those of rank 0.
type Settings struct {
	ISA     string        `json:"isa,omitempty"`
	Weights string        `json:"weights,omitempty"` // weights file set by the user, without the rank's suffix
	Profile string        `json:"profile,omitempty"`
	Threads int           `json:"threads,omitempty"` // per rank of an MPI job; 0: its share of the machine's cores
	Pin     bool          `json:"pin,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // maximum silence of a rank during a step; 0: comm.DefaultTimeout
}

func (s *Settings) timeout() time.Duration { return cmp.Or(s.Timeout, comm.DefaultTimeout) }

// A Program provides the code and weights of the ranks: the compiled binary.
type Program interface {
	// Manifest returns the manifest of the whole model; its Partition is set.
	Manifest() *manifest.Manifest
	// Hash identifies the program's code and manifest.
	Hash() string
	// Rank returns a rank's manifest, code and dispatch table.
	Rank(rank int, s *Settings) (*Rank, error)
	// Shares returns the manifests of all ranks.
	Shares() ([]*manifest.Manifest, error)
	// Weights reads a rank's weights. source identifies the files that they were made
	// from.
	Weights(rank int, s *Settings) (data []byte, source string, err error)
}

// A Rank is the code of one rank.
type Rank struct {
	Manifest *manifest.Manifest
	Device   device.Device
	Library  *cpu.Library // contains the transports between ranks, for every kind of device
	Dispatch []byte
}

// A ThreadGroup is the device of a partitioned model with all ranks in this process.
type ThreadGroup struct {
	breakage
	program  Program
	settings Settings
	part     *manifest.Partition
	ranks    []*Rank
	open     atomic.Pointer[threadModel] // nil: no model is open
}

var _ Group = (*ThreadGroup)(nil)

// Threads loads the code of all ranks in this process.
func Threads(p Program, s Settings) (*ThreadGroup, error) {
	e := &ThreadGroup{breakage: newBreakage(), program: p, settings: s, part: p.Manifest().Partition}
	for r := range e.part.Ranks {
		rank, err := p.Rank(r, &s)
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		e.ranks = append(e.ranks, rank)
	}
	return e, nil
}

// weightBytes returns the size of the rank's weights.
func (r *Rank) weightBytes() (n int64) {
	for _, w := range r.Manifest.Weights {
		n = max(n, w.Offset+w.Bytes)
	}
	return n
}

// Info returns the sums over all ranks, with the name of the first rank's device. The
// bandwidth of all ranks together is unknown.
func (e *ThreadGroup) Info() device.Info {
	info := device.Info{Name: e.ranks[0].Device.Info().Name, InFlight: e.part.Stages()}
	for _, r := range e.ranks {
		info.WeightBytes += r.weightBytes()
		own := r.Device.Info()
		info.PageBytes += own.PageBytes
		info.CellBytes += own.CellBytes
		info.OwnMemory = info.OwnMemory || own.OwnMemory
	}
	return info
}

// ScratchBytes returns the scratch memory of all ranks, with one thread per rank.
func (e *ThreadGroup) ScratchBytes(cfg *device.Config) (n int64) {
	one := *cfg
	one.Threads = 1
	for _, r := range e.ranks {
		n += r.Device.ScratchBytes(&one)
	}
	return n
}

// Peak returns 0: it is unknown.
func (e *ThreadGroup) Peak(device.Arithmetic, int, time.Duration) float64 { return 0 }

// Start reads the weights of all ranks and starts their threads.
func (e *ThreadGroup) Start(cfg *device.Config) (device.Context, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	weights, err := e.load()
	if err != nil {
		return nil, err
	}
	shares := share(cfg.Threads, e.part.Ranks)
	l := &threadModel{ThreadGroup: e, out: e.part.Output()}
	threads := 0
	for _, s := range shares {
		threads += s.n
	}
	l.hub, err = comm.OpenHub(e.ranks[0].Library, places(e.part), threads > cpu.DefaultThreads(), e.settings.timeout())
	if err != nil {
		return nil, err
	}
	for r := range e.ranks {
		own := *cfg
		own.Threads, own.CPUs = shares[r].n, nil
		if to := shares[r].from + shares[r].n; to <= len(cfg.CPUs) {
			own.CPUs = cfg.CPUs[shares[r].from:to]
		}
		m := &runner{rank: r, endpoint: l.hub.Endpoint(r), jobs: make(chan func(), 256)}
		l.running.Go(m.work)
		if err := m.begin(e.ranks[r], own, weights[r], cpu.CoreSet(shares[r].set, len(e.ranks))); err != nil {
			close(m.jobs)
			l.Close()
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		l.runners = append(l.runners, m)
	}
	e.open.Store(l)
	return l, nil
}

// load reads the weights of all ranks concurrently and checks that they come from the
// same files.
func (e *ThreadGroup) load() ([][]byte, error) {
	n := len(e.ranks)
	data, sources, errs := make([][]byte, n), make([]string, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() { data[r], sources[r], errs[r] = e.program.Weights(r, &e.settings) })
	}
	wg.Wait()
	for r := range n {
		if errs[r] == nil && sources[r] != sources[0] {
			errs[r] = errOtherWeights
		}
		if errs[r] != nil {
			return nil, fmt.Errorf("rank %d: %w", r, errs[r])
		}
	}
	return data, nil
}

var errOtherWeights = errors.New("its weights were made from different files than those of rank 0; compile the model again")

// Counts returns the communication volume of each rank so far.
func (e *ThreadGroup) Counts() []Counts {
	if l := e.open.Load(); l != nil {
		return l.counts()
	}
	return nil
}

// A coreShare is a rank's range of the threads and of the CPUs to pin them to, and the
// index of its set of cores.
type coreShare struct{ from, n, set int }

// share distributes the threads over the ranks in order of device number: device n uses
// the n-th set of cores. Each rank gets at least one thread; the first ranks get the
// remainder.
func share(threads int, ranks []manifest.Rank) []coreShare {
	order := make([]int, len(ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(deviceNumber(ranks[a].Device), deviceNumber(ranks[b].Device)) })
	list := make([]coreShare, len(ranks))
	from := 0
	for i, r := range order {
		n := threads / len(ranks)
		if i < threads%len(ranks) {
			n++
		}
		list[r] = coreShare{from, max(1, n), i}
		from += max(1, n)
	}
	return list
}

// deviceNumber returns the number in a device name, or -1 for "cpu".
func deviceNumber(device string) int {
	if n, err := strconv.Atoi(device); err == nil {
		return n
	}
	return -1
}

// places returns the place of each rank in the partition.
func places(p *manifest.Partition) (list []comm.Place) {
	for r, k := range p.Ranks {
		list = append(list, comm.Place{Rank: int32(r), Ranks: int32(len(p.Ranks)), First: int32(r - k.TPRank), TPSize: int32(k.TPSize)})
	}
	return list
}
