//go:build unix

package ranks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// shares are an adapter packed for each rank; nil: nothing is loaded.
type shares []*lora.Packed

// PackRank returns an error: the ranks' shares are packed already.
func (shares) PackRank([]manifest.Site, [][]manifest.RowRun, []manifest.Site) (*lora.Packed, error) {
	return nil, errors.New("bug: the shares of an adapter are packed")
}

// sharesOf returns an adapter packed for every rank of a program; of nil, no adapter.
func sharesOf(p Program, a lora.Packer) (shares, error) {
	if list, ok := a.(shares); ok {
		return list, nil
	}
	ranks, err := p.Shares()
	if err != nil {
		return nil, err
	}
	list := make(shares, len(ranks))
	for r, m := range ranks {
		if a == nil {
			continue
		}
		if list[r], err = a.PackRank(m.Sites, m.RowOrders, p.Manifest().Sites); err != nil {
			return nil, err
		}
		if n := len(list[r].Data); n > adapterFloats {
			return nil, fmt.Errorf("the adapter has %d numbers for rank %d, expected at most %d", n, r, adapterFloats)
		}
	}
	return list, nil
}

// packed is sharesOf as a Packer.
func packed(p Program, a lora.Packer) (lora.Packer, error) {
	list, err := sharesOf(p, a)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// setAdapter loads the rank's share of an adapter, or frees the number with nil.
func (m *runner) setAdapter(number int32, p *lora.Packed) (err error) {
	if p == nil {
		err = m.ctx.SetAdapter(number, nil)
	} else {
		err = m.ctx.SetAdapter(number, p)
	}
	if err != nil {
		return fmt.Errorf("rank %d of the model: %w", m.rank, err)
	}
	return nil
}

// An adapterHead announces an adapter packed for the receiving rank.
type adapterHead struct {
	Number int32             `json:"number"`
	Free   bool              `json:"free,omitempty"` // free the number; nothing follows
	Sites  []lora.PackedSite `json:"sites,omitempty"`
	Floats int               `json:"floats"`
}

const (
	adapterChunk  = 256 << 10 // words of an adapter per message
	adapterFloats = 1 << 31   // most numbers of an adapter on a rank
	adapterLimit  = time.Minute
)

// PackAdapter packs an adapter for every rank.
func (m *remoteModel) PackAdapter(a lora.Packer) (lora.Packer, error) { return packed(m.program, a) }

// SetAdapter loads or frees an adapter on every rank, after the steps submitted before.
func (m *remoteModel) SetAdapter(number int32, a lora.Packer) error {
	list, err := sharesOf(m.program, a)
	if err != nil {
		return err
	}
	if err = m.setAdapter(number, list); err != nil && a != nil && m.Why() == nil {
		m.setAdapter(number, make(shares, len(list))) // on the ranks that have loaded it
	}
	return err
}

func (m *remoteModel) setAdapter(number int32, list shares) error {
	if err := m.Why(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	m.orders <- &order{alone: true, own: func() error {
		refused, err := m.loadEverywhere(number, list)
		if err != nil {
			refused = m.failed(err)
		}
		ended <- refused
		return nil
	}}
	select {
	case err := <-ended:
		return err
	case <-m.Broken():
		return m.Why()
	case <-m.stuck:
		return m.Why()
	}
}

// loadEverywhere loads an adapter on every rank. refused is the error of a rank that goes on
// without it; after err the job cannot. The ranks get their shares chunk by chunk, so that
// none of them hears nothing for long.
func (m *remoteModel) loadEverywhere(number int32, list shares) (refused, err error) {
	most := 0
	for r := 1; r < len(list); r++ {
		head := adapterHead{Number: number, Free: list[r] == nil}
		if p := list[r]; p != nil {
			head.Sites, head.Floats = p.Sites, len(p.Data)
			most = max(most, len(p.Data))
		}
		w, err := appendJSON(words(msgAdapter), &head)
		if err == nil {
			err = m.control.Send(r, comm.Control, bytesOf(w))
		}
		if err != nil {
			return nil, err
		}
	}
	for at := 0; at < most; at += adapterChunk {
		for r := 1; r < len(list); r++ {
			if err := m.sendChunk(r, list[r], at); err != nil {
				return nil, err
			}
		}
	}
	for r := 1; r < len(list); r++ {
		answer, err := m.loaded(r)
		if err != nil {
			return nil, err
		}
		refused = cmp.Or(refused, answer)
	}
	return cmp.Or(refused, m.me.setAdapter(number, list[0])), nil
}

// sendChunk sends some numbers of a share, from an index on, if it has so many.
func (m *remoteModel) sendChunk(rank int, p *lora.Packed, at int) error {
	if p == nil || at >= len(p.Data) {
		return nil
	}
	data := p.Data[at:min(at+adapterChunk, len(p.Data))]
	w := append(words(msgAdapterData), make([]int32, len(data))...)
	copy(bytesOf(w[1:]), bytesOf(data))
	return m.control.Send(rank, comm.Control, bytesOf(w))
}

// loaded waits for a rank's reply to an adapter.
func (m *remoteModel) loaded(rank int) (refused, err error) {
	answer, err := m.control.Await(rank, comm.Reply, adapterLimit)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		m.control.Fail(rank)
		return nil, &comm.RankError{Rank: rank, Err: fmt.Errorf("no adapter loaded after %v", adapterLimit)}
	}
	r, err := readReply(rank, answer)
	if err != nil {
		return nil, err
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
	packed *lora.Packed // nil: the number is freed
}

// adapter receives an adapter's head or some of its numbers; with the last ones it loads the
// adapter and replies.
func (f *worker) adapter(what int, w []int32) error {
	if what == msgAdapter {
		var head adapterHead
		if err := json.Unmarshal(bytesOf(w), &head); err != nil {
			return fmt.Errorf("bug: rank 0 sent an invalid adapter: %w", err)
		}
		if head.Number < 0 || head.Number >= device.MaxAdapters || head.Floats < 0 || head.Floats > adapterFloats || head.Free && head.Floats > 0 {
			return fmt.Errorf("bug: rank 0 sent adapter %d of %d numbers", head.Number, head.Floats)
		}
		f.coming = &coming{number: head.Number, floats: head.Floats}
		if !head.Free {
			f.coming.packed = &lora.Packed{Sites: head.Sites} // Data grows with what comes
		}
	} else {
		c := f.coming
		if c == nil || c.packed == nil || len(c.packed.Data)+len(w) > c.floats {
			return errors.New("bug: rank 0 sent numbers of no adapter")
		}
		at := len(c.packed.Data)
		c.packed.Data = append(c.packed.Data, make([]float32, len(w))...)
		copy(bytesOf(c.packed.Data[at:]), bytesOf(w))
	}
	c := f.coming
	if c.packed != nil && len(c.packed.Data) < c.floats {
		return nil
	}
	f.coming = nil
	var answer reply
	if err := f.me.setAdapter(c.number, c.packed); err != nil {
		answer.Error = err.Error()
	}
	return f.answer(&answer)
}
