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

// TCP is the control channel of a job without MPI: one connection between rank 0 and
// each other rank. It carries the runtime's messages only; the data of steps lies on
// GPUs and is sent by NCCL.
type TCP struct {
	Thread
	launch   Launch
	peers    []*peer // indexed by rank; other ranks have a connection only to rank 0
	patience atomic.Int64
	gone     atomic.Pointer[RankError] // the lost rank; nil: none
	lost     chan struct{}
	leaving  atomic.Bool
}

// A peer is the rank at the other end of a connection.
type peer struct {
	conn    net.Conn
	writing sync.Mutex
	ended   chan struct{} // closed when the connection has ended

	mu      sync.Mutex
	queue   map[Tag][][]byte
	waiting int // bytes of queue, with perMessage for each message
	came    chan struct{}
}

// Tags of TCP's own frames.
const (
	tagGone      Tag = 1 // names a lost rank
	tagHandshake Tag = 2
	tagBye       Tag = 3 // rank 0 closes the connections in order
)

// maxFrame is the maximum size of a message: the logits of a large step. maxWaiting bounds
// those that nothing has taken.
const (
	maxFrame   = 1 << 30
	maxWaiting = 2 * maxFrame
	perMessage = 128
)

func newTCP(l Launch) *TCP {
	link := &TCP{Thread: newThread(), launch: l, peers: make([]*peer, l.Ranks), lost: make(chan struct{})}
	link.SetTimeout(DefaultTimeout)
	return link
}

func newPeer(conn net.Conn) *peer {
	return &peer{conn: conn, queue: map[Tag][][]byte{}, came: make(chan struct{}, 1), ended: make(chan struct{})}
}

// start starts to read from all connections.
func (l *TCP) start() {
	for r, p := range l.peers {
		if p != nil {
			go l.listen(p, r)
		}
	}
}

// listen queues the messages of a rank until they are requested. A connection that ends
// means that the rank is lost, and so does a message that no rank sends.
func (l *TCP) listen(p *peer, rank int) {
	defer close(p.ended)
	for {
		tag, data, err := readFrame(p.conn, maxFrame)
		if err != nil {
			l.Fail(rank)
			return
		}
		if err = l.receive(p, tag, data); err != nil {
			l.lose(&RankError{Rank: rank, Err: fmt.Errorf("bug: %w", err)})
			p.conn.Close()
			return
		}
	}
}

// receive handles a message.
func (l *TCP) receive(p *peer, tag Tag, data []byte) error {
	leads := l.launch.Rank == 0
	switch {
	case tag == tagGone && len(data) == 4:
		rank := binary.LittleEndian.Uint32(data)
		if rank >= uint32(len(l.peers)) {
			return fmt.Errorf("it has lost rank %d of %d", rank, len(l.peers))
		}
		l.Fail(int(rank))
		return nil
	case tag == tagBye && !leads:
		l.leaving.Store(true)
		return nil
	case leads && tag != Reply && tag != Result && tag != Pong, !leads && tag != Control:
		return fmt.Errorf("a message with the tag %d, of %d bytes", tag, len(data))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting += len(data) + perMessage; p.waiting > maxWaiting {
		return errors.New("more messages than anybody asked for")
	}
	p.queue[tag] = append(p.queue[tag], data)
	select {
	case p.came <- struct{}{}:
	default: // a wakeup is already pending
	}
	return nil
}

// take removes and returns the first message with a tag, or nil.
func (p *peer) take(tag Tag) (data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queue[tag]; len(q) > 0 {
		data, p.queue[tag] = q[0], q[1:]
		p.waiting -= len(data) + perMessage
	}
	return data
}

// head returns the header of a frame.
func head(tag Tag, n int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(tag)), uint32(n))
}

// readFrame reads a frame of at most most bytes. It allocates memory only as the data
// arrives.
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

// tcpTick is the interval at which waiting calls check their timeout.
const tcpTick = 50 * time.Millisecond

// write sends a frame. It returns false if the peer accepts no data for as long as
// patience.
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

// peer returns the connection to a rank.
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

// Probe returns the size of a pending message, or -1 if there is none.
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

// Recv receives a message of exactly len(data) bytes.
func (l *TCP) Recv(from int, tag Tag, data []byte) error {
	got, err := l.Await(from, tag, time.Duration(l.patience.Load()))
	switch {
	case err != nil:
		return err
	case got == nil:
		l.Fail(from)
		return l.err()
	case len(got) != len(data):
		return &RankError{Rank: from, Err: fmt.Errorf("bug: a message of %d bytes instead of %d", len(got), len(data))}
	}
	copy(data, got)
	return nil
}

// Await waits for a message. It returns nil if none arrives within patience.
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
			if data := p.take(tag); data != nil { // it may have arrived before the connection ended
				return data, nil
			}
			return nil, l.err()
		}
	}
	return nil, nil
}

// Fail marks a rank as lost and informs the other ranks.
func (l *TCP) Fail(rank int) { l.lose(&RankError{Rank: rank}) }

// lose is Fail with the reason.
func (l *TCP) lose(why *RankError) {
	if l.leaving.Load() || !l.gone.CompareAndSwap(nil, why) {
		return
	}
	close(l.lost)
	for r, p := range l.peers {
		if p != nil && r != why.Rank {
			p.write(tagGone, binary.LittleEndian.AppendUint32(nil, uint32(why.Rank)), shortTimeout)
		}
	}
}

// Lost returns a channel that is closed when a rank is lost; Failed then returns its
// number.
func (l *TCP) Lost() <-chan struct{} { return l.lost }

// Failed returns the lost rank, or -1.
func (l *TCP) Failed() int {
	if why := l.gone.Load(); why != nil {
		return why.Rank
	}
	return -1
}

func (l *TCP) err() error {
	if why := l.gone.Load(); why != nil {
		return why
	}
	return nil
}

// SetTimeout sets the timeout for silent ranks.
func (l *TCP) SetTimeout(d time.Duration) { l.patience.Store(int64(d)) }

// ShortenTimeout shortens the timeout for silent ranks; see Endpoint.ShortenTimeout.
func (l *TCP) ShortenTimeout() { l.SetTimeout(shortTimeout) }

// Table returns nil: steps communicate by NCCL.
func (l *TCP) Table() unsafe.Pointer { return nil }

// Counts returns no counts: NCCLGroup counts the communication of steps.
func (l *TCP) Counts() Counts { return Counts{} }

// Flush prepares for Leave: rank 0 announces the end on every connection, and the other
// ranks wait until rank 0 closes theirs. So no rank mistakes the end of a connection
// for a loss.
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

// Leave closes the connections.
func (l *TCP) Leave() {
	l.closeAll()
	l.stop()
}

// Abort returns: the end of this process closes its connections, which tells the others.
func (l *TCP) Abort(int) {}

func (l *TCP) closeAll() {
	l.leaving.Store(true)
	for _, p := range l.peers {
		if p != nil {
			p.conn.Close()
		}
	}
}
