//go:build unix

package server

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// A fakeListener accepts connections and errors that a test sends.
type fakeListener struct {
	net.Listener
	next chan any
}

func (l fakeListener) Accept() (net.Conn, error) {
	switch v := (<-l.next).(type) {
	case net.Conn:
		return v, nil
	case error:
		return nil, v
	}
	return nil, net.ErrClosed
}

// A fakeConn is a connection from a given address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

func (c *fakeConn) RemoteAddr() net.Addr { return fakeAddr(c.from) }

type fakeAddr string

func (fakeAddr) Network() string  { return "tcp" }
func (a fakeAddr) String() string { return string(a) }

// A gateTest opens connections one at a time.
type gateTest struct {
	*gate
	t    *testing.T
	next chan any
}

func newGateTest(t *testing.T) *gateTest {
	l := fakeListener{next: make(chan any, 3)}
	return &gateTest{newGate(l, 6), t, l.next}
}

// dial opens a connection; the second result is nil if the gate refused it.
func (g *gateTest) dial(from string) (*fakeConn, *connection) {
	g.t.Helper()
	f := &fakeConn{from: from}
	g.next <- syscall.ECONNABORTED // the gate must continue after this error
	g.next <- f
	g.next <- net.ErrClosed // received only if the gate refused the connection
	c, err := g.Accept()
	if err != nil {
		return f, nil
	}
	<-g.next
	return f, c.(*connection)
}

func (g *gateTest) has(open, peers int) {
	g.t.Helper()
	if g.open != open || len(g.peers) != peers {
		g.t.Errorf("%d connections of %d addresses, want %d of %d", g.open, len(g.peers), open, peers)
	}
}

// TestGate checks that the address with the most connections loses its longest spare
// one, and that working connections are kept.
func TestGate(t *testing.T) {
	t.Parallel()
	g := newGateTest(t)
	var many []*fakeConn
	for i := range 3 {
		f, _ := g.dial(fmt.Sprintf("1.1.1.1:%d", i))
		many = append(many, f)
	}
	one, oneC := g.dial("2.2.2.2:1")
	oneC.begin()
	g.dial("3.3.3.3:1")
	g.dial("3.3.3.3:2")
	g.has(6, 3)
	g.dial("4.4.4.4:1")
	if !many[0].closed || many[1].closed {
		t.Error("the oldest of the largest address was not the one")
	}
	g.dial("1.1.1.1:4")
	g.dial("1.1.1.1:5")
	if !many[1].closed {
		t.Error("the address with the most kept its oldest connection")
	}
	if f, c := g.dial("2.2.2.2:2"); c == nil || f.closed || one.closed {
		t.Error("a connection with work was closed, or a new one refused")
	}
	g.has(6, 4)
	oneC.done()
	oneC.Close()
	oneC.Close() // a second Close has no effect
	g.has(5, 4)
	g.closeSpare(time.Hour)
	g.has(5, 4)
	g.closeSpare(0)
	g.has(0, 0)
}

// TestGateFull checks that an address with only working connections gets no more, and
// that too many open files close a spare connection.
func TestGateFull(t *testing.T) {
	t.Parallel()
	g := newGateTest(t)
	spare, _ := g.dial("6.6.6.6:1")
	for i := range 4 {
		f, c := g.dial(fmt.Sprintf("5.5.5.5:%d", i))
		if (c != nil) != (i < 3) || f.closed != (c == nil) {
			t.Errorf("connection %d with all others at work: %v", i, c)
		}
		if c != nil {
			c.begin()
		}
	}
	g.next <- syscall.EMFILE
	g.next <- &fakeConn{from: "6.6.6.6:2"}
	if _, err := g.Accept(); err != nil || !spare.closed {
		t.Errorf("too many files: %v, %v", err, spare.closed)
	}
	g.has(4, 2)
}

// TestGateHandlers checks that an address cannot have more requests over HTTP/2 than
// connections, and that all together leave others their share.
func TestGateHandlers(t *testing.T) {
	t.Parallel()
	g := newGateTest(t) // for 6 connections, 3 of an address
	_, c := g.dial("7.7.7.7:1")
	_, d := g.dial("8.8.8.8:1")
	_, e := g.dial("9.9.9.9:1")
	for i := range 4 {
		if c.enter(true) != (i < 3) || d.enter(true) != (i < 3) {
			t.Errorf("request %d of an address", i)
		}
	}
	if !c.enter(false) {
		t.Error("a request over HTTP/1 was refused")
	}
	for i := range 3 {
		if e.enter(true) != (i < 2) {
			t.Errorf("request %d of a third address, while the others have 7 of 6", i)
		}
	}
	for range 4 {
		c.leave()
	}
	for range 3 {
		c.Close()
		d.leave()
	}
	e.leave()
	g.has(2, 2)
	if e.leave(); g.handlers != 0 || !c.enter(true) {
		t.Errorf("%d requests are left", g.handlers)
	}
}

// TestReadRate checks that only what a connection sends apart from requests is read slowly.
func TestReadRate(t *testing.T) {
	t.Parallel()
	at := time.Now()
	r := readRate{left: otherFirst, at: at}
	for range 1000 {
		r.take(64<<10, at)
		if r.credit(64 << 10); r.take(0, at) {
			t.Fatalf("a request waits, with %d bytes left", r.left)
		}
	}
	if r.take(r.left, at) || !r.take(otherRate, at) || !r.take(0, at.Add(time.Second/2)) || r.take(0, at.Add(2*time.Second)) {
		t.Errorf("%d bytes are left of a flood", r.left)
	}
	for range 1000 { // requests that are reset at once
		r.credit(perRequest)
		r.take(200, at)
		r.credit(-perRequest)
	}
	if !r.take(0, at) {
		t.Errorf("%d bytes are left of 1,000 resets", r.left)
	}
	if r.take(1<<20, at); r.take(1, at.Add(time.Hour)) || r.left != otherMost {
		t.Errorf("after an hour, a byte waits, with %d bytes left", r.left)
	}
}
