//go:build unix

// Package ranks runs a partitioned model: each rank has a device, weights and a
// KV cache of its own, and all run every step together. The ranks are threads of
// one process (ThreadGroup), or processes of a job that a launcher started (Job),
// of which rank 0 leads (Leader) and the others work.
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

// Settings are how ranks are to run. In an MPI job they come from rank 0.
type Settings struct {
	ISA     string        `json:"isa,omitempty"`
	Weights string        `json:"weights,omitempty"` // file named by the user, without the rank's ending
	Profile string        `json:"profile,omitempty"`
	Threads int           `json:"threads,omitempty"` // of a rank of an MPI job; 0: its share of the machine's cores
	Pin     bool          `json:"pin,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // how long a rank may say nothing in a step; 0: comm.DefaultTimeout
}

func (s *Settings) timeout() time.Duration { return cmp.Or(s.Timeout, comm.DefaultTimeout) }

// A Program is what the ranks are opened from: the compiled binary.
type Program interface {
	// Manifest describes the whole model; it has a Partition.
	Manifest() *manifest.Manifest
	// Hash names the program's code and manifest.
	Hash() string
	// Rank reads the manifest of a rank, and the code and the dispatch table that
	// it runs with.
	Rank(rank int, s *Settings) (*Rank, error)
	// Weights opens a rank's weights and reads them. source names the files that
	// they were made from.
	Weights(rank int, s *Settings) (data []byte, source string, err error)
}

// A Rank is what one rank computes with.
type Rank struct {
	Manifest *manifest.Manifest
	Device   device.Device
	Library  *cpu.Library // has the transports between ranks, whatever the device
	Dispatch []byte
}

// pageBytes lists the page size of every element of every state.
func (r *Rank) pageBytes() (list []int64) {
	for _, s := range r.Manifest.States {
		for range s.Count {
			list = append(list, s.PageBytes)
		}
	}
	return list
}

// A ThreadGroup is the device of a partitioned model whose ranks are threads of
// this process.
type ThreadGroup struct {
	breakage
	program  Program
	settings Settings
	part     *manifest.Partition
	ranks    []*Rank
	open     atomic.Pointer[threadModel] // the model, while it is open
}

var _ Group = (*ThreadGroup)(nil)

// Threads opens the code of all ranks in this process.
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

// weightBytes is the size of the rank's weights.
func (r *Rank) weightBytes() (n int64) {
	for _, w := range r.Manifest.Weights {
		n = max(n, w.Offset+w.Bytes)
	}
	return n
}

// Info adds up what all ranks take, under the name of the first one's device.
func (e *ThreadGroup) Info() device.Info {
	info := device.Info{Name: e.ranks[0].Device.Info().Name, InFlight: e.part.Stages()}
	for _, r := range e.ranks {
		info.WeightBytes += r.weightBytes()
		info.PageBytes += r.Device.Info().PageBytes
	}
	return info
}

// ScratchBytes is the scratch memory of all ranks with a thread each.
func (e *ThreadGroup) ScratchBytes(cfg *device.Config) (n int64) {
	one := *cfg
	one.Threads = 1
	for _, r := range e.ranks {
		n += r.Device.ScratchBytes(&one)
	}
	return n
}

// Peak is not known.
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

// load reads the weights of all ranks at once and checks that they belong
// together.
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

var errOtherWeights = errors.New("its weights were made from other files than those of rank 0; compile the model again")

// Counts are what each rank has sent so far.
func (e *ThreadGroup) Counts() []comm.Counts {
	if l := e.open.Load(); l != nil {
		return l.counts()
	}
	return nil
}

// A coreShare is a rank's part of the threads and of the processors that they
// may be pinned to, and which set of cores is its own.
type coreShare struct{ from, n, set int }

// share gives every rank its threads, in order of the device numbers: device n
// has the n-th set of cores. Each has at least one, and the first ones what is
// left over.
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

// deviceNumber is a device's, -1 of "cpu".
func deviceNumber(device string) int {
	if n, err := strconv.Atoi(device); err == nil {
		return n
	}
	return -1
}

// places says where each rank stands.
func places(p *manifest.Partition) (list []comm.Place) {
	for r, k := range p.Ranks {
		list = append(list, comm.Place{Rank: int32(r), Ranks: int32(len(p.Ranks)), First: int32(r - k.TPRank), TPSize: int32(k.TPSize)})
	}
	return list
}
