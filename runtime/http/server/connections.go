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

// A gate is a listener that bounds the number of open connections. Beyond the bound it
// closes the longest idle connection of the address with the most connections. A client
// that opens thousands loses its own, and others are not blocked.
type gate struct {
	net.Listener
	max, maxEach int // open connections in total, and per address

	mu       sync.Mutex
	open     int
	handlers int // running ones, of all connections
	peers    map[string]*peer
}

// A peer is an address with open connections.
type peer struct {
	name     string
	open     int
	handlers int
	spare    list.List // of *connection without a running request, most recently used first
}

// A connection tracks whether it has a running request. A request counts as running
// once its body is read.
type connection struct {
	net.Conn
	gate *gate
	peer *peer
	rate readRate

	// Guarded by gate.mu:
	work   int           // running requests; HTTP/2 may have several
	at     *list.Element // in spare; nil while work > 0
	since  time.Time     // time of the last move into spare
	closed bool
}

// newGate returns a gate with the given maximum. One address may have half of the
// connections.
func newGate(l net.Listener, limit int) *gate {
	return &gate{Listener: l, max: limit, maxEach: max(1, limit/2), peers: map[string]*peer{}}
}

// Minimum and maximum pause after a failed Accept.
const minPause, maxPause = 5 * time.Millisecond, time.Second

// Accept waits for a connection. It retries after a pause on errors such as too many
// open files, and returns an error only if the listener is closed.
func (g *gate) Accept() (net.Conn, error) {
	pause := minPause
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
		pause = min(2*pause, maxPause)
	}
}

// admit registers a connection, or returns nil if the limit is reached and all
// connections have running requests.
func (g *gate) admit(conn net.Conn) *connection {
	name := access.PeerGroup(conn.RemoteAddr().String())
	g.mu.Lock()
	p := g.peers[name]
	if p == nil {
		p = &peer{name: name}
		g.peers[name] = p
	}
	c := &connection{Conn: conn, gate: g, peer: p, rate: newReadRate()}
	g.open++
	p.open++
	var victim *connection
	switch {
	case p.open > g.maxEach:
		victim = p.oldest()
	case g.open > g.max:
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

// largest returns the address with the most connections among those with a spare one,
// or nil.
func (g *gate) largest() (most *peer) {
	for _, p := range g.peers {
		if p.spare.Len() > 0 && (most == nil || p.open > most.open) {
			most = p
		}
	}
	return most
}

// spare unregisters and returns the connection to close first, or nil.
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

// closeSpare closes the connections that have been spare for at least idle.
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

// forget unregisters a connection. gate.mu is held.
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
	c.gate.prune(c.peer)
}

// prune removes an address without connections. g.mu is held.
func (g *gate) prune(p *peer) {
	if p.open == 0 && p.handlers == 0 {
		delete(g.peers, p.name)
	}
}

// enter counts a handler, and leave its end. HTTP/2 has several on a connection: an address
// may have as many as connections, and if all have more than that together, its share.
// enter returns false if a handler of HTTP/2 is too many.
func (c *connection) enter(http2 bool) bool {
	g, p := c.gate, c.peer
	g.mu.Lock()
	defer g.mu.Unlock()
	if http2 && (p.handlers >= g.maxEach || g.handlers >= g.max && p.handlers*len(g.peers) >= g.max) {
		return false
	}
	g.handlers++
	p.handlers++
	return true
}

// leave ends what enter has begun.
func (c *connection) leave() {
	g, p := c.gate, c.peer
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handlers--
	p.handlers--
	g.prune(p)
}

// atOnce is how soon after a request its reset makes it count as none.
const atOnce = 20 * time.Millisecond

// drop closes a connection that was unregistered; c may be nil.
func (c *connection) drop() {
	if c != nil {
		c.Conn.Close() // the peer is gone
	}
}

// rest moves a connection without running requests to spare. gate.mu is held.
func (c *connection) rest() {
	c.since = time.Now()
	c.at = c.peer.spare.PushFront(c)
}

// begin counts a request as running.
func (c *connection) begin() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.work++
	if c.at != nil {
		c.peer.spare.Remove(c.at)
		c.at = nil
	}
}

// done counts a request as ended.
func (c *connection) done() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.work--
	if c.work == 0 && !c.closed {
		c.rest()
	}
}

// Close closes and unregisters the connection.
func (c *connection) Close() error {
	c.gate.mu.Lock()
	c.forget()
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection stores a connection in the context of its requests.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// entered counts a request's handler until leave is called, or returns a refusal.
func entered(r *http.Request, x *exchange) (leave func(), e *apiError) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}, nil
	}
	x.from = c
	if !c.enter(r.ProtoMajor == 2) {
		return func() {}, tooMany(&access.Refusal{Limit: "concurrency", Text: "this address has too many requests on its HTTP/2 connections; wait for one to end"})
	}
	if r.ProtoMajor < 2 {
		c.rate.lift()
		return c.leave, nil
	}
	c.rate.credit(perRequest)
	begun := time.Now()
	return func() {
		if r.Context().Err() != nil && time.Since(begun) < atOnce {
			c.rate.credit(-perRequest)
		}
		c.leave()
	}, nil
}

// working marks a request's connection as working from the moment the body is read
// until done is called.
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

// readWhole is a body that marks its connection as working when it is read to the end.
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
	b.connection.rate.credit(n)
	if err == io.EOF {
		b.end()
	}
	return n, err
}
