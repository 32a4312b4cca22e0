//go:build unix

package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/iflowc/iflowc/runtime/http/access"
)

// A gate is a listener that bounds the open connections. Beyond the bound it
// closes one that has no request at work: of the address with the most
// connections, the one that is idle longest. So a client that opens thousands
// loses its own, and nobody waits for a place.
type gate struct {
	net.Listener
	most, mostEach int // connections in all, and of an address

	mu    sync.Mutex
	open  int
	peers map[string]*peer
}

// A peer is an address with open connections.
type peer struct {
	name  string
	open  int
	spare list.List // of *connection without a request at work, the latest in front
}

// A connection knows whether a request of it is at work, which begins when the
// request was read whole.
type connection struct {
	net.Conn
	gate *gate
	peer *peer

	// Of the gate's lock:
	work   int           // requests; HTTP/2 has several
	at     *list.Element // in spare; nil while there is work
	since  time.Time     // of at
	closed bool
}

// newGate bounds a listener. One address has at most half of the connections.
func newGate(l net.Listener, most int) *gate {
	return &gate{Listener: l, most: most, mostEach: max(1, most/2), peers: map[string]*peer{}}
}

// The times between two attempts to accept after an error.
const leastPause, mostPause = 5 * time.Millisecond, time.Second

// Accept waits for a connection. An error other than that the listener is
// closed, as one of too many open files, does not end the service: it tries
// again after a pause.
func (g *gate) Accept() (net.Conn, error) {
	pause := leastPause
	for {
		conn, err := g.Listener.Accept()
		switch {
		case err == nil:
			if c := g.admit(conn); c != nil {
				return c, nil
			}
			conn.Close()
			continue
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			g.spare().drop()
		}
		time.Sleep(pause)
		pause = min(2*pause, mostPause)
	}
}

// admit gives a connection a place, nil when all places have work.
func (g *gate) admit(conn net.Conn) *connection {
	name := access.PeerGroup(conn.RemoteAddr().String())
	g.mu.Lock()
	p := g.peers[name]
	if p == nil {
		p = &peer{name: name}
		g.peers[name] = p
	}
	c := &connection{Conn: conn, gate: g, peer: p}
	g.open++
	p.open++
	var victim *connection
	switch {
	case p.open > g.mostEach:
		victim = p.oldest()
	case g.open > g.most:
		victim = g.largest().oldest()
	default:
		c.rest()
		g.mu.Unlock()
		return c
	}
	if victim == nil {
		c.forget()
		c = nil
	} else {
		victim.forget()
		c.rest()
	}
	g.mu.Unlock()
	victim.drop()
	return c
}

// largest is the address with the most connections that has a spare one, nil
// for none.
func (g *gate) largest() (most *peer) {
	for _, p := range g.peers {
		if p.spare.Len() > 0 && (most == nil || p.open > most.open) {
			most = p
		}
	}
	return most
}

// spare takes out the connection that is to go first, nil for none.
func (g *gate) spare() *connection {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.largest().oldest()
	if c != nil {
		c.forget()
	}
	return c
}

func (p *peer) oldest() *connection {
	if p == nil || p.spare.Len() == 0 {
		return nil
	}
	return p.spare.Back().Value.(*connection)
}

// closeSpare closes the connections that had nothing at work for a time.
func (g *gate) closeSpare(idle time.Duration) {
	var all []*connection
	g.mu.Lock()
	for _, p := range g.peers {
		for e := p.spare.Back(); e != nil; e = e.Prev() {
			if c := e.Value.(*connection); time.Since(c.since) >= idle {
				all = append(all, c)
			}
		}
	}
	for _, c := range all {
		c.forget()
	}
	g.mu.Unlock()
	for _, c := range all {
		c.drop()
	}
}

// forget takes a connection out of the gate's counts; the lock is held.
func (c *connection) forget() {
	if c.closed {
		return
	}
	c.closed = true
	if c.at != nil {
		c.peer.spare.Remove(c.at)
		c.at = nil
	}
	c.gate.open--
	c.peer.open--
	if c.peer.open == 0 {
		delete(c.gate.peers, c.peer.name)
	}
}

// drop closes a connection that was forgotten; nil is none.
func (c *connection) drop() {
	if c != nil {
		c.Conn.Close() // nobody is left to tell
	}
}

// rest says that the connection has no work; the lock is held.
func (c *connection) rest() {
	c.since = time.Now()
	c.at = c.peer.spare.PushFront(c)
}

// begin says that a request was read, and done that it is answered.
func (c *connection) begin() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.work++
	if c.at != nil {
		c.peer.spare.Remove(c.at)
		c.at = nil
	}
}

func (c *connection) done() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.work--
	if c.work == 0 && !c.closed {
		c.rest()
	}
}

// Close closes the connection and gives its place back.
func (c *connection) Close() error {
	c.gate.mu.Lock()
	c.forget()
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection tells a connection's requests which it is.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// working keeps a request's connection open from when the request was read
// whole until done is called.
func working(r *http.Request) (done func()) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	b := &readWhole{ReadCloser: r.Body, connection: c}
	if r.ContentLength == 0 {
		b.end()
	} else {
		r.Body = b
	}
	return func() {
		if b.ended {
			c.done()
		}
	}
}

// readWhole is a body that tells its connection when it was read to its end.
type readWhole struct {
	io.ReadCloser
	connection *connection
	ended      bool
}

func (b *readWhole) end() {
	if !b.ended {
		b.ended = true
		b.connection.begin()
	}
}

func (b *readWhole) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.end()
	}
	return n, err
}
