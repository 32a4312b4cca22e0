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

// A load is many workers that send requests at once, each again and again.
type load struct {
	s     *service
	ctx   context.Context
	mu    sync.Mutex
	count map[int]int    // answers by status; 0: closed without one
	says  map[int]string // the first answer of each status
	sent  int
}

// A worker is one connection after another.
type worker struct {
	*load
	n   int // which of the workers
	seq int // which of its requests
}

// An act is what a worker does once.
type act func(w *worker)

// run starts the workers and returns what ends them.
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

// sleep waits, at most until the load ends.
func (w *worker) sleep(d time.Duration) {
	select {
	case <-w.ctx.Done():
	case <-time.After(d):
	}
}

// dial connects from an address of the attacker's own: a service without keys
// tells clients apart by it. Closing sends a reset, so that no ports run out.
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
	// The end of the load ends what blocks on a connection.
	stop := context.AfterFunc(w.ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	return &attackConn{c, stop}
}

// An attackConn forgets its part in the load's end when it is closed.
type attackConn struct {
	net.Conn
	stop func() bool
}

func (c *attackConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// note counts an answer. What the end of the load cut off is not counted.
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

// sentence is what an error's answer says.
func sentence(text []byte) string {
	if m := message.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	_, body, _ := bytes.Cut(text, []byte("\r\n\r\n"))
	return strings.ToValidUTF8(string(body[:min(len(body), 100)]), "?")
}

// read takes an answer up to its end, keeps the beginning and counts it.
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

// status is the number in an answer's first line; 0: none.
func status(head []byte) int {
	if len(head) < 12 || !bytes.HasPrefix(head, []byte("HTTP/1.")) {
		return 0
	}
	n, _ := strconv.Atoi(string(head[9:12]))
	return n
}

// A request makes the bytes to send.
type request func(w *worker) []byte

// same sends one thing always.
func same(data []byte) request { return func(*worker) []byte { return data } }

// post has a body after a head that closes the connection with the answer.
func post(path string, body []byte, headers ...string) []byte {
	return raw("POST "+path+" HTTP/1.1", body, headers...)
}

// raw has the key of the attacker, unless a header brings another one.
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

// ask sends and reads the whole answer.
func ask(r request) act {
	return func(w *worker) {
		if c := w.dial(); c != nil {
			defer c.Close()
			w.begin(c, r(w))
			w.read(c)
		}
	}
}

// begin writes a request. An error is no end: an answer may be there.
func (w *worker) begin(c net.Conn, data []byte) {
	w.mu.Lock()
	w.sent++
	w.mu.Unlock()
	c.Write(data)
}

// leave sends and goes away after a time.
func leave(r request, after time.Duration) act {
	return func(w *worker) {
		if c := w.dial(); c != nil {
			defer c.Close()
			w.begin(c, r(w))
			w.sleep(after)
		}
	}
}

// hold sends and then neither reads nor goes.
func hold(r request) act {
	return func(w *worker) {
		if c := w.dial(); c != nil {
			defer c.Close()
			// A small window: what the service writes stays with the service.
			c.(*attackConn).Conn.(*net.TCPConn).SetReadBuffer(2048)
			w.begin(c, r(w))
			w.sleep(time.Hour)
		}
	}
}

// sip reads an answer a few bytes at a time.
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

// dribble sends the first bytes at once and the others piece by piece, and
// reads what comes when the service ends it.
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

// mixed takes turns between workers.
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
