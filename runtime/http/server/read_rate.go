//go:build unix

package server

import (
	"errors"
	"sync"
	"time"
)

// A readRate bounds what a connection sends apart from requests: pings, settings, resets and
// other frames of HTTP/2, records of TLS. One that sends more is not read for a while, and
// then closed. Requests and what they answer allow for more. HTTP/1 has no such frames.
type readRate struct {
	mu    sync.Mutex
	http1 bool
	left  int // bytes; below 0: too much was sent
	at    time.Time
}

// Limits of a connection, in bytes.
const (
	otherFirst = 16 << 10
	otherRate  = 4 << 10 // per second
	otherMost  = 128 << 10
	perRequest = 64 << 10 // headers, and the window of a body
)

// A connection that has sent too much is closed after maxReadWait, unless a request allows for
// it, which is looked at after each readPause.
const (
	maxReadWait = time.Second
	readPause   = 5 * time.Millisecond
)

func newReadRate() readRate { return readRate{left: otherFirst, at: time.Now()} }

// credit allows bytes of a request, or for its answer.
func (r *readRate) credit(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = min(r.left+n, otherMost)
}

// lift ends the limits.
func (r *readRate) lift() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.http1 = true
}

// take counts bytes that were read, and reports whether they are too many.
func (r *readRate) take(n int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left -= n; r.left >= 0 || r.http1 {
		return false
	}
	if refill := int(now.Sub(r.at).Seconds() * otherRate); refill > 0 {
		r.left, r.at = min(r.left+refill, otherMost), now
	}
	return r.left < 0
}

var errFlood = errors.New("the client sends too much apart from requests")

// Read reads from the connection. What it has sent is delivered, but nothing after too much.
func (c *connection) Read(p []byte) (int, error) {
	begun := time.Now()
	for now := begun; c.rate.take(0, now); now = time.Now() {
		if now.Sub(begun) > maxReadWait {
			return 0, errFlood
		}
		time.Sleep(readPause)
	}
	n, err := c.Conn.Read(p)
	c.rate.take(n, time.Now())
	return n, err
}
