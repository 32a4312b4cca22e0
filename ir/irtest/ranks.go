package irtest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

// CompareRanks runs a whole module, and the programs of its ranks concurrently, on the same
// random stored tensors and the steps of Compare. It compares the outputs of the first rank
// of the last TP group with those of the whole module; for ir.DraftGraph it compares rank 0.
// Ranks are numbered group by group, with tpSize ranks per group.
func CompareRanks(whole *ir.Module, ranks []*ir.Module, tpSize int, seed uint64, tol float64) error {
	src, err := interp.Random(seed, append([]*ir.Module{whole}, ranks...)...)
	if err != nil {
		return err
	}
	ww := interp.NewWeights(whole, src)
	var ws []interp.Weights
	for _, m := range ranks {
		ws = append(ws, interp.NewWeights(m, locked(src)))
	}
	for _, sc := range scenarios(whole, seed) {
		st := interp.NewStates()
		sts := make([]*interp.States, len(ranks))
		for i := range sts {
			sts[i] = interp.NewStates()
		}
		for i, step := range sc.steps {
			for _, g := range sourcesFirst(whole) {
				step := withExtra(step, g, seed)
				want, err := interp.Run(whole, g.Name, step, ww, st)
				if err != nil {
					return fmt.Errorf("%s, step %d, whole: %w", sc.name, i, err)
				}
				if own := ranks[0].Graph(g.Name); own != nil {
					step = withExtra(*step, own, seed) // unused results of other graphs
				}
				got, err := runRanks(ranks, g.Name, *step, &network{tpSize: tpSize}, ws, sts)
				if err != nil {
					return fmt.Errorf("%s, step %d, graph %s: %w", sc.name, i, g.Name, err)
				}
				out := len(ranks) - tpSize
				if g.Name == ir.DraftGraph {
					out = 0
				}
				if err := near(want, got[out], tol); err != nil {
					return fmt.Errorf("%s, step %d, graph %s: %w", sc.name, i, g.Name, err)
				}
			}
		}
	}
	return nil
}

// locked makes a source safe for concurrent use by ranks.
func locked(src interp.Source) interp.Source {
	var mu sync.Mutex
	return func(name string) (*tensor.Tensor, error) {
		mu.Lock()
		defer mu.Unlock()
		return src(name)
	}
}

// runRanks runs one step on every rank and returns the outputs of each.
func runRanks(ranks []*ir.Module, graph string, step interp.Step, net *network, ws []interp.Weights, sts []*interp.States) ([][]*tensor.Tensor, error) {
	net.stop, net.links = make(chan struct{}), map[[2]int]chan *tensor.Tensor{}
	for a := range ranks {
		for b := range ranks {
			net.links[[2]int{a, b}] = make(chan *tensor.Tensor, 64)
		}
	}
	outs, errs := make([][]*tensor.Tensor, len(ranks)), make([]error, len(ranks))
	var all sync.WaitGroup
	for i, m := range ranks {
		all.Go(func() {
			s := step
			s.Comm = link{net, i}
			if outs[i], errs[i] = interp.Run(m, graph, &s, ws[i], sts[i]); errs[i] != nil {
				errs[i] = fmt.Errorf("rank %d: %w", i, errs[i])
				net.once.Do(func() { close(net.stop) })
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errStopped) {
			return nil, err
		}
	}
	return outs, errors.Join(errs...)
}

// errStopped is the error of ranks that wait for a failed rank.
var errStopped = errors.New("another rank stopped")

// A network connects the ranks of a test.
type network struct {
	tpSize int
	links  map[[2]int]chan *tensor.Tensor
	stop   chan struct{}
	once   sync.Once
}

// A link is the view of a network from one rank.
type link struct {
	*network
	rank int
}

// Exchange implements interp.Comm.
func (l link) Exchange(mine *tensor.Tensor) ([]*tensor.Tensor, error) {
	first := l.rank / l.tpSize * l.tpSize
	for m := range l.tpSize {
		if err := l.Send(first+m, mine); err != nil {
			return nil, err
		}
	}
	parts := make([]*tensor.Tensor, l.tpSize)
	for m := range parts {
		var err error
		if parts[m], err = l.Recv(first + m); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// Send implements interp.Comm.
func (l link) Send(to int, x *tensor.Tensor) error {
	select {
	case l.links[[2]int{l.rank, to}] <- x:
		return nil
	case <-l.stop:
		return errStopped
	}
}

// Recv implements interp.Comm.
func (l link) Recv(from int) (*tensor.Tensor, error) {
	select {
	case x := <-l.links[[2]int{from, l.rank}]:
		return x, nil
	case <-l.stop:
		return nil, errStopped
	}
}
