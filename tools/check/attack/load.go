//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A load is a number of workers that send requests repeatedly.
type load struct {
	s     *service
	ctx   context.Context
	mu    sync.Mutex
	count map[int]int    // responses by status; 0: closed without a response
	says  map[int]string // the first response of each status
	sent  int
}

// A worker opens one connection after another.
type worker struct {
	*load
	n   int // index of the worker
	seq int // index of the request
}

// An act is one action of a worker.
type act func(w *worker)

// run starts the workers and returns a function that stops them.
func run(s *service, workers int, pause time.Duration, do act) (l *load, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	l = &load{s: s, ctx: ctx, count: map[int]int{}, says: map[int]string{}}
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			w := &worker{load: l, n: n}
			for ; ctx.Err() == nil; w.seq++ {
				do(w)
				w.sleep(pause)
			}
		})
	}
	return l, func() { cancel(); wg.Wait() }
}

// sleep waits, but not beyond the end of the load.
func (w *worker) sleep(d time.Duration) {
	select {
	case <-w.ctx.Done():
	case <-time.After(d):
	}
}

// dial connects from the attacker's own address, by which a service without
// keys distinguishes clients. Closing sends a reset, so that ports do not run
// out.
func (w *worker) dial() net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 10 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, 24, 1) // IP_BIND_ADDRESS_NO_PORT
		})
	}}
	c, err := d.DialContext(w.ctx, "tcp", w.s.addr)
	if err != nil {
		w.note(0, []byte(err.Error()))
		w.sleep(20 * time.Millisecond)
		return nil
	}
	c.(*net.TCPConn).SetLinger(0)
	// The end of the load unblocks connections.
	stop := context.AfterFunc(w.ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	return &attackConn{c, stop}
}

// An attackConn unregisters from the end of the load when it is closed.
type attackConn struct {
	net.Conn
	stop func() bool
}

func (c *attackConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// note counts a response, unless the end of the load cut it off.
func (w *worker) note(status int, text []byte) {
	if w.ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[status]++
	if _, ok := w.says[status]; !ok {
		w.says[status] = sentence(text)
	}
}

var message = regexp.MustCompile(`"message": ?"((?:[^"\\]|\\.)*)"`)

// sentence returns the message of an error response.
func sentence(text []byte) string {
	if m := message.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	_, body, _ := bytes.Cut(text, []byte("\r\n\r\n"))
	return strings.ToValidUTF8(string(body[:min(len(body), 100)]), "?")
}

// read reads a response to its end, keeps the start and counts it.
func (w *worker) read(c net.Conn) {
	head, buf := make([]byte, 0, 1024), make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		head = append(head, buf[:min(n, cap(head)-len(head))]...)
		if err != nil {
			break
		}
	}
	w.note(status(head), head)
}

// status returns the number in a response's first line, or 0.
func status(head []byte) int {
	if len(head) < 12 || !bytes.HasPrefix(head, []byte("HTTP/1.")) {
		return 0
	}
	n, _ := strconv.Atoi(string(head[9:12]))
	return n
}

// A request builds the bytes to send.
type request func(w *worker) []byte

// same always sends the same bytes.
func same(data []byte) request { return func(*worker) []byte { return data } }

// post sends a body with a header that closes the connection after the
// response.
func post(path string, body []byte, headers ...string) []byte {
	return raw("POST "+path+" HTTP/1.1", body, headers...)
}

// raw adds the attacker's key, unless a header has another one.
func raw(line string, body []byte, headers ...string) []byte {
	head := line + "\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
	all := strings.Join(headers, "\r\n")
	if !strings.Contains(all, "Authorization:") {
		head += "Authorization: Bearer " + evilKey + "\r\n"
	}
	if !strings.Contains(all, "Content-Type:") {
		head += "Content-Type: application/json\r\n"
	}
	if !strings.Contains(all, "Transfer-Encoding:") && !strings.Contains(all, "Content-Length:") {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if all != "" {
		head += all + "\r\n"
	}
	return append([]byte(head+"\r\n"), body...)
}

// ask sends a request and reads the whole response.
func ask(r request) act {
	return func(w *worker) {
		if c := w.dial(); c != nil {
			defer c.Close()
			w.begin(c, r(w))
			w.read(c)
		}
	}
}

// begin writes a request. After an error, a response may still arrive.
func (w *worker) begin(c net.Conn, data []byte) {
	w.mu.Lock()
	w.sent++
	w.mu.Unlock()
	c.Write(data)
}

// leave sends a request and disconnects after a time.
func leave(r request, after time.Duration) act {
	return func(w *worker) {
		if c := w.dial(); c != nil {
			defer c.Close()
			w.begin(c, r(w))
			w.sleep(after)
		}
	}
}

// hold sends a request and then neither reads nor disconnects.
func hold(r request) act {
	return func(w *worker) {
		if c := w.dial(); c != nil {
			defer c.Close()
			// A small window: the response stays in the service's buffers.
			c.(*attackConn).Conn.(*net.TCPConn).SetReadBuffer(2048)
			w.begin(c, r(w))
			w.sleep(time.Hour)
		}
	}
}

// sip reads a response a few bytes at a time.
func sip(r request, n int, every time.Duration) act {
	return func(w *worker) {
		c := w.dial()
		if c == nil {
			return
		}
		defer c.Close()
		c.(*attackConn).Conn.(*net.TCPConn).SetReadBuffer(2048)
		w.begin(c, r(w))
		head, buf := []byte(nil), make([]byte, n)
		for {
			k, err := c.Read(buf)
			if len(head) < 512 {
				head = append(head, buf[:k]...)
			}
			if err != nil {
				break
			}
			w.sleep(every)
		}
		w.note(status(head), head)
	}
}

// dribble sends the first bytes at once and the rest in pieces, and reads the
// response when the service ends the request.
func dribble(r request, first, piece int, every time.Duration) act {
	return func(w *worker) {
		c := w.dial()
		if c == nil {
			return
		}
		defer c.Close()
		data := r(w)
		first := min(first, len(data))
		w.begin(c, data[:first])
		for data = data[first:]; len(data) > 0 && w.ctx.Err() == nil; w.sleep(every) {
			n := min(piece, len(data))
			if _, err := c.Write(data[:n]); err != nil {
				break
			}
			data = data[n:]
		}
		w.read(c)
	}
}

// mixed distributes several acts among the workers.
func mixed(list ...act) act {
	return func(w *worker) { list[(w.n+w.seq)%len(list)](w) }
}

// statuses prints counts in order.
func statuses(count map[int]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(count)) {
		name := strconv.Itoa(k)
		if k == 0 {
			name = "closed"
		}
		list = append(list, fmt.Sprintf("%s×%d", name, count[k]))
	}
	return strings.Join(list, " ")
}
