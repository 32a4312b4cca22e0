//go:build unix

package comm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// TCP is how the ranks of a job without MPI hear of a model's steps: a
// connection between rank 0 and each other one. It carries what the runtime says,
// never what a step computes with: that is on GPUs, and goes by NCCL.
type TCP struct {
	Thread
	launch   Launch
	peers    []*peer // by rank; of all but rank 0 only rank 0 itself
	patience atomic.Int64
	gone     atomic.Int32 // rank, -1: none
	lost     chan struct{}
	leaving  atomic.Bool
}

// A peer is a rank at the other end of a connection.
type peer struct {
	conn    net.Conn
	writing sync.Mutex
	ended   chan struct{} // nothing more comes

	mu    sync.Mutex
	queue map[Tag][][]byte
	came  chan struct{}
}

// Tags of TCP's own frames.
const (
	tagGone      Tag = 1 // a rank that is given up
	tagHandshake Tag = 2
	tagBye       Tag = 3 // rank 0 closes the connections in order
)

// maxFrame is the longest message: the rows of logits of a large step.
const maxFrame = 1 << 30

func newTCP(l Launch) *TCP {
	link := &TCP{Thread: newThread(), launch: l, peers: make([]*peer, l.Ranks), lost: make(chan struct{})}
	link.gone.Store(-1)
	link.SetTimeout(DefaultTimeout)
	return link
}

func newPeer(conn net.Conn) *peer {
	return &peer{conn: conn, queue: map[Tag][][]byte{}, came: make(chan struct{}, 1), ended: make(chan struct{})}
}

// start hears what the others say from now on.
func (l *TCP) start() {
	for r, p := range l.peers {
		if p != nil {
			go l.listen(p, r)
		}
	}
}

// listen keeps what a rank says until somebody asks. A connection that ends is a
// rank that is lost.
func (l *TCP) listen(p *peer, rank int) {
	defer close(p.ended)
	for {
		tag, data, err := readFrame(p.conn, maxFrame)
		switch {
		case err != nil:
			l.Fail(rank)
			return
		case tag == tagGone && len(data) == 4:
			l.Fail(int(binary.LittleEndian.Uint32(data)))
		case tag == tagBye:
			l.leaving.Store(true)
		default:
			p.mu.Lock()
			p.queue[tag] = append(p.queue[tag], data)
			p.mu.Unlock()
			select {
			case p.came <- struct{}{}:
			default: // whoever waits looks again anyway
			}
		}
	}
}

// take is the first message of a tag, nil: there is none.
func (p *peer) take(tag Tag) (data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queue[tag]; len(q) > 0 {
		data, p.queue[tag] = q[0], q[1:]
	}
	return data
}

// head begins a frame.
func head(tag Tag, n int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(tag)), uint32(n))
}

// readFrame reads one of at most so many bytes. Memory is taken as they come.
func readFrame(conn net.Conn, most uint32) (Tag, []byte, error) {
	var h [8]byte
	if _, err := io.ReadFull(conn, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(h[4:])
	if n == 0 || n > most {
		return 0, nil, fmt.Errorf("a message of %d bytes", n)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, conn, int64(n)); err != nil {
		return 0, nil, err
	}
	return Tag(binary.LittleEndian.Uint32(h[:])), b.Bytes(), nil
}

// tcpTick is how often one that waits looks at the time.
const tcpTick = 50 * time.Millisecond

// write sends a frame; false: the rank took nothing for as long as the patience.
func (p *peer) write(tag Tag, data []byte, patience time.Duration) bool {
	p.writing.Lock()
	defer p.writing.Unlock()
	var w Stopwatch
	for rest := slices.Concat(head(tag, len(data)), data); len(rest) > 0; {
		p.conn.SetWriteDeadline(time.Now().Add(tcpTick))
		n, err := p.conn.Write(rest)
		rest = rest[n:]
		if n > 0 {
			w = Stopwatch{}
		}
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || w.Elapsed() > patience) {
			return false
		}
	}
	return true
}

// peer is the one behind a connection.
func (l *TCP) peer(rank int) (*peer, error) {
	if rank < 0 || rank >= len(l.peers) || l.peers[rank] == nil {
		return nil, fmt.Errorf("bug: rank %d has no connection to rank %d", l.launch.Rank, rank)
	}
	return l.peers[rank], nil
}

// Send sends a message.
func (l *TCP) Send(to int, tag Tag, data []byte) error {
	p, err := l.peer(to)
	if err != nil {
		return err
	}
	if len(data) == 0 || len(data) > maxFrame {
		return fmt.Errorf("bug: a message of %d bytes", len(data))
	}
	if l.Failed() < 0 && !p.write(tag, data, time.Duration(l.patience.Load())) {
		l.Fail(to)
	}
	return l.err()
}

// Probe gives the size of the message that is there, -1: none is.
func (l *TCP) Probe(from int, tag Tag) (int, error) {
	p, err := l.peer(from)
	if err != nil {
		return -1, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queue[tag]; len(q) > 0 {
		return len(q[0]), nil
	}
	return -1, l.err()
}

// Recv receives a message of as many bytes as data has.
func (l *TCP) Recv(from int, tag Tag, data []byte) error {
	got, err := l.Await(from, tag, time.Duration(l.patience.Load()))
	switch {
	case err != nil:
		return err
	case got == nil:
		l.Fail(from)
		return l.err()
	case len(got) != len(data):
		return &RankError{Rank: from, Err: fmt.Errorf("bug: a message of %d bytes in place of %d", len(got), len(data))}
	}
	copy(data, got)
	return nil
}

// Await waits for a message; nil when none has come within the patience.
func (l *TCP) Await(from int, tag Tag, patience time.Duration) ([]byte, error) {
	p, err := l.peer(from)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(tcpTick)
	defer tick.Stop()
	for w := (Stopwatch{}); w.Elapsed() < patience; {
		if data := p.take(tag); data != nil {
			return data, nil
		}
		select {
		case <-p.came:
		case <-tick.C:
		case <-l.lost:
			if data := p.take(tag); data != nil { // it came before
				return data, nil
			}
			return nil, l.err()
		}
	}
	return nil, nil
}

// Fail gives a rank up and tells the others.
func (l *TCP) Fail(rank int) {
	if l.leaving.Load() || !l.gone.CompareAndSwap(-1, int32(rank)) {
		return
	}
	close(l.lost)
	for r, p := range l.peers {
		if p != nil && r != rank {
			p.write(tagGone, binary.LittleEndian.AppendUint32(nil, uint32(rank)), shortTimeout)
		}
	}
}

// Lost is closed when a rank is gone; Failed then is which, else -1.
func (l *TCP) Lost() <-chan struct{} { return l.lost }

// Failed is the rank that could not be reached, -1: none.
func (l *TCP) Failed() int { return int(l.gone.Load()) }

func (l *TCP) err() error {
	if r := l.Failed(); r >= 0 {
		return &RankError{Rank: r}
	}
	return nil
}

// SetTimeout says how long a silent rank is waited for from now on.
func (l *TCP) SetTimeout(d time.Duration) { l.patience.Store(int64(d)) }

// ShortenTimeout is Endpoint's.
func (l *TCP) ShortenTimeout() { l.SetTimeout(shortTimeout) }

// Table is none: a step reaches other ranks by NCCL.
func (l *TCP) Table() unsafe.Pointer { return nil }

// Counts are none either: the NCCLGroup has them.
func (l *TCP) Counts() Counts { return Counts{} }

// Flush says goodbye: rank 0 hangs up first, when it has let all go, and the
// others wait for that, so that nobody takes the end of a connection for a loss.
func (l *TCP) Flush() error {
	l.leaving.Store(true)
	for _, p := range l.peers {
		switch {
		case p == nil:
		case l.launch.Rank == 0:
			p.write(tagBye, []byte{1}, time.Duration(l.patience.Load()))
		default:
			select {
			case <-p.ended:
			case <-time.After(time.Duration(l.patience.Load())):
			}
		}
	}
	return nil
}

// Leave ends the connections.
func (l *TCP) Leave() {
	l.closeAll()
	l.stop()
}

func (l *TCP) closeAll() {
	l.leaving.Store(true)
	for _, p := range l.peers {
		if p != nil {
			p.conn.Close()
		}
	}
}
