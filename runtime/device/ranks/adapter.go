//go:build unix

package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A shared adapter is packed for a rank of a model whose ranks have all sites together.
type shared struct {
	lora.Packer
	all []manifest.Site
}

func (s shared) PackRank(sites []manifest.Site, orders [][]manifest.RowRun, _ []manifest.Site) (*lora.Packed, error) {
	return s.Packer.PackRank(sites, orders, s.all)
}

// setAdapter loads an adapter of a model with the given sites, or frees it with nil.
func (m *runner) setAdapter(number int32, a lora.Packer, all []manifest.Site) error {
	if a != nil {
		a = shared{a, all}
	}
	if err := m.ctx.SetAdapter(number, a); err != nil {
		return fmt.Errorf("rank %d of the model: %w", m.rank, err)
	}
	return nil
}

// An adapterHead announces an adapter packed for the receiving rank. Without sites it
// frees the number.
type adapterHead struct {
	Number int32             `json:"number"`
	Sites  []lora.PackedSite `json:"sites,omitempty"`
	Floats int               `json:"floats"`
}

const (
	adapterChunk  = 4 << 20 // words of an adapter per message
	adapterFloats = 1 << 31 // most numbers of an adapter
	adapterLimit  = time.Minute
)

// SetAdapter packs an adapter for every rank and sends it, after the steps submitted before.
func (m *remoteModel) SetAdapter(number int32, a lora.Packer) error {
	err := m.setAdapter(number, a)
	if err != nil && a != nil && m.Why() == nil {
		m.setAdapter(number, nil) // on the ranks that have loaded it
	}
	return err
}

func (m *remoteModel) setAdapter(number int32, a lora.Packer) error {
	if err := m.Why(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	m.orders <- &order{alone: true, own: func() error {
		refused, err := m.loadEverywhere(number, a)
		if err != nil {
			refused = m.failed(err)
		}
		ended <- refused
		return nil
	}}
	select {
	case err := <-ended:
		return err
	case <-m.stuck:
		return m.Why()
	}
}

// loadEverywhere loads an adapter on every rank. refused is the error of a rank that goes on
// without it; after err the job cannot.
func (m *remoteModel) loadEverywhere(number int32, a lora.Packer) (refused, err error) {
	shares, refused := m.program.Shares()
	if refused != nil {
		return refused, nil
	}
	all := m.program.Manifest().Sites
	for r := 1; r < len(shares); r++ {
		p := &lora.Packed{}
		if a != nil {
			if p, refused = a.PackRank(shares[r].Sites, shares[r].RowOrders, all); refused != nil {
				return refused, nil
			}
		}
		if refused, err = m.sendAdapter(r, number, p); refused != nil || err != nil {
			return refused, err
		}
	}
	return m.me.setAdapter(number, a, all), nil
}

// sendAdapter sends a packed adapter to a rank and waits until it has loaded it.
func (m *remoteModel) sendAdapter(rank int, number int32, p *lora.Packed) (refused, err error) {
	head, err := appendJSON(words(msgAdapter), &adapterHead{number, p.Sites, len(p.Data)})
	if err != nil {
		return nil, err
	}
	if err := m.control.Send(rank, comm.Control, bytesOf(head)); err != nil {
		return nil, err
	}
	for data := p.Data; ; {
		n := min(len(data), adapterChunk)
		w := append(words(msgAdapterData), make([]int32, n)...)
		copy(bytesOf(w[1:]), bytesOf(data[:n]))
		if err := m.control.Send(rank, comm.Control, bytesOf(w)); err != nil {
			return nil, err
		}
		if data = data[n:]; len(data) == 0 {
			break
		}
	}
	answer, err := m.control.Await(rank, comm.Reply, adapterLimit)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		m.control.Fail(rank)
		return nil, &comm.RankError{Rank: rank, Err: fmt.Errorf("no adapter loaded after %v", adapterLimit)}
	}
	var r reply
	if err := json.Unmarshal(answer, &r); err != nil {
		return nil, &comm.RankError{Rank: rank, Err: fmt.Errorf("bug: invalid reply %q", answer)}
	}
	if r.Error != "" {
		return errors.New(r.Error), nil
	}
	return nil, nil
}

// A coming adapter is one that rank 0 is sending.
type coming struct {
	number int32
	floats int
	packed *lora.Packed
}

// adapter receives an adapter's head or some of its numbers; with the last ones it loads the
// adapter and replies.
func (f *worker) adapter(what int, w []int32) error {
	if what == msgAdapter {
		var head adapterHead
		if err := json.Unmarshal(bytesOf(w), &head); err != nil {
			return fmt.Errorf("bug: rank 0 sent an invalid adapter: %w", err)
		}
		if head.Number < 0 || head.Number >= device.MaxAdapters || head.Floats < 0 || head.Floats > adapterFloats {
			return fmt.Errorf("bug: rank 0 sent adapter %d of %d numbers", head.Number, head.Floats)
		}
		f.coming = &coming{head.Number, head.Floats, &lora.Packed{Sites: head.Sites}}
		return nil
	}
	c := f.coming
	if c == nil || len(c.packed.Data)+len(w) > c.floats {
		return errors.New("bug: rank 0 sent numbers of no adapter")
	}
	at := len(c.packed.Data)
	c.packed.Data = append(c.packed.Data, make([]float32, len(w))...)
	copy(bytesOf(c.packed.Data[at:]), bytesOf(w))
	if len(c.packed.Data) < c.floats {
		return nil
	}
	f.coming = nil
	var a lora.Packer
	if len(c.packed.Sites) > 0 {
		a = c.packed
	}
	var answer reply
	if err := f.me.setAdapter(c.number, a, nil); err != nil {
		answer.Error = err.Error()
	}
	return f.answer(&answer)
}
