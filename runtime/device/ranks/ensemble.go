//go:build unix

// Package ranks runs a partitioned model: its ranks each have a library,
// weights, a state and a team of threads of their own, and run every step
// together. The ranks are threads of one process, or processes of an MPI job, of
// which rank 0 leads and the others follow.
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
	Library  *device.Library
	Code     *device.Library // the processor's, where Library is a GPU's: the transports are in it
	Dispatch []byte
}

// transports is the library with the transports between ranks.
func (r *Rank) transports() *device.Library { return cmp.Or(r.Code, r.Library) }

// pageBytes lists the page size of every element of every state.
func (r *Rank) pageBytes() (list []int64) {
	for _, s := range r.Manifest.States {
		for range s.Count {
			list = append(list, s.PageBytes)
		}
	}
	return list
}

// An Ensemble is the device of a partitioned model whose ranks are threads of
// this process.
type Ensemble struct {
	breakage
	program  Program
	settings Settings
	part     *manifest.Partition
	ranks    []*Rank
	open     atomic.Pointer[local] // the model, while it is open
}

// Threads opens the code of all ranks in this process.
func Threads(p Program, s Settings) (*Ensemble, error) {
	e := &Ensemble{breakage: newBreakage(), program: p, settings: s, part: p.Manifest().Partition}
	for r := range e.part.Ranks {
		rank, err := p.Rank(r, &s)
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		e.ranks = append(e.ranks, rank)
	}
	return e, nil
}

// memory is the bytes of the rank's weights, and of a page of its state.
func (r *Rank) memory() (weights, page int64) {
	for _, w := range r.Manifest.Weights {
		weights = max(weights, w.Offset+w.Bytes)
	}
	for _, n := range r.pageBytes() {
		page += n
	}
	return weights, page
}

// Memory is what all ranks take.
func (e *Ensemble) Memory() (weights, page int64) {
	for _, r := range e.ranks {
		w, p := r.memory()
		weights, page = weights+w, page+p
	}
	return weights, page
}

// Name is the instruction set.
func (e *Ensemble) Name() string { return e.ranks[0].Library.ISA }

// StateBytes is the size of the state of all ranks.
func (e *Ensemble) StateBytes(pages int) (n int64) {
	for _, r := range e.ranks {
		n += r.Library.StateBytes(pages)
	}
	return n
}

// ArenaBytes is the size of the scratch memory of all ranks with a thread each.
func (e *Ensemble) ArenaBytes(maxTokens, maxWanted, maxSeqs int) (n int64) {
	for _, r := range e.ranks {
		n += r.Library.ArenaBytes(1, maxTokens, maxWanted, maxSeqs)
	}
	return n
}

// Open reads the weights of all ranks and starts their threads.
func (e *Ensemble) Open(cfg *device.Config) (device.DeviceModel, error) {
	n := len(e.ranks)
	weights, err := e.load()
	if err != nil {
		return nil, err
	}
	shares := share(cfg.Threads, e.part.Ranks)
	l := &local{Ensemble: e, out: e.part.Output()}
	threads := 0
	for _, s := range shares {
		threads += s.n
	}
	l.hub, err = comm.OpenHub(e.ranks[0].transports(), places(e.part), threads > device.DefaultThreads(), e.settings.timeout())
	if err != nil {
		return nil, err
	}
	for r := range n {
		own := *cfg
		own.Threads, own.CPUs = shares[r].n, nil
		if to := shares[r].from + shares[r].n; to <= len(cfg.CPUs) {
			own.CPUs = cfg.CPUs[shares[r].from:to]
		}
		m := &member{rank: r, end: l.hub.End(r), jobs: make(chan func(), 256)}
		l.members = append(l.members, m)
		l.running.Go(m.work)
		if err := m.begin(e.ranks[r], own, weights[r], device.CoreSet(shares[r].set, n)); err != nil {
			l.Close()
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	e.open.Store(l)
	return l, nil
}

// load reads the weights of all ranks at once and checks that they belong
// together.
func (e *Ensemble) load() ([][]byte, error) {
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

// Counts are what each rank has said so far.
func (e *Ensemble) Counts() []comm.Counts {
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
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(number(ranks[a].Device), number(ranks[b].Device)) })
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

// number is a device's, -1 of "cpu".
func number(device string) int {
	if n, err := strconv.Atoi(device); err == nil {
		return n
	}
	return -1
}

// places says where each rank stands.
func places(p *manifest.Partition) (list []comm.Place) {
	for r, k := range p.Ranks {
		list = append(list, comm.Place{Rank: int32(r), Ranks: int32(len(p.Ranks)), First: int32(r - k.Member), Members: int32(k.Members)})
	}
	return list
}

// start maps the memory of a rank and starts its threads, which stay on the set
// of cores that this thread is then confined to.
func (m *member) start(k *Rank, cfg device.Config, weights []byte, cores []int) (err error) {
	cfg.Weights, cfg.Dispatch, cfg.PageBytes, cfg.Comm = weights, k.Dispatch, k.pageBytes(), m.end.Table()
	device.Confine(cores)
	m.ctx, err = k.Library.Start(cfg)
	return err
}

// begin is start on the member's own thread.
func (m *member) begin(k *Rank, cfg device.Config, weights []byte, cores []int) error {
	done := make(chan error, 1)
	m.jobs <- func() { done <- m.start(k, cfg, weights, cores) }
	return <-done
}
