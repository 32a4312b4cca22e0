//go:build unix

package comm

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// dialed returns a connection to rank 0, which may not listen yet.
func dialed(t *testing.T, at string) net.Conn {
	t.Helper()
	for range 1000 {
		if conn, err := net.Dial("tcp", at); err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("nothing listens at " + at)
	return nil
}

// TestSecret checks that only ranks that know rank 0's secret take part, and that others
// neither take part nor end the job.
func TestSecret(t *testing.T) {
	t.Parallel()
	at := freePort(t)
	with := func(rank int, secret string) Member {
		m := member(rank, 2, at)
		m.secret, m.Job = secret, "job"
		return m
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		if l, err := Rendezvous(t.Context(), with(0, "secret")); err != nil {
			t.Error(err)
		} else {
			l.closeAll()
		}
	})
	hello := handshake{Protocol: protocol, Rank: 1, Ranks: 2, Program: "program", Job: "job", Nonce: "nonce"}
	other, old := hello, hello
	other.Job, old.Protocol = "another", "ranks 2"
	for name, c := range map[string]struct {
		hello  handshake
		secret string // "": echoes rank 0's proof
		want   string
	}{
		"wrong secret": {hello, "guess", "another IFLOWC_RANKS_SECRET"}, "echo": {hello, "", "another IFLOWC_RANKS_SECRET"},
		"another job": {other, "secret", `the job "another"`}, "another version": {old, "secret", "another version"},
	} {
		conn := dialed(t, at)
		sent, err := writeHandshake(conn, c.hello)
		var answer handshake
		if _, e := readHandshake(conn, &answer); err != nil || e != nil {
			t.Fatal(name, err, e)
		}
		if answer.Error == "" {
			proof := answer.Proof
			if c.secret != "" {
				proof = prove(c.secret, byWorker, sent, answer.Nonce)
			}
			writeHandshake(conn, handshake{Protocol: protocol, Proof: proof})
			readHandshake(conn, &answer)
		}
		if !strings.Contains(answer.Error, c.want) {
			t.Errorf("%s: %q, expected %q", name, answer.Error, c.want)
		}
	}
	ignorant := with(1, "")
	ignorant.Limit = 50 * time.Millisecond
	if _, err := Rendezvous(t.Context(), ignorant); err == nil || !strings.Contains(err.Error(), "another IFLOWC_RANKS_SECRET") {
		t.Errorf("a rank without the secret: %v", err)
	}
	l, err := Rendezvous(t.Context(), with(1, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	l.closeAll()
}

// TestReplay checks that the recorded bytes of a rank that took part are worth nothing.
func TestReplay(t *testing.T) {
	t.Parallel()
	own := handshake{Protocol: protocol, Ranks: 2}
	var recorded []byte
	for _, replays := range []bool{false, true} {
		here, there := net.Pipe()
		r := &reception{own: own, secret: "secret", state: &wait{}}
		var all sync.WaitGroup
		all.Go(func() {
			defer there.Close()
			if replays {
				go io.Copy(io.Discard, there)
				there.Write(recorded)
				return
			}
			sent, _ := writeHandshake(there, handshake{Protocol: protocol, Rank: 1, Ranks: 2, Nonce: newNonce()})
			var answer handshake
			readHandshake(there, &answer)
			proof, _ := writeHandshake(there, handshake{Protocol: protocol, Proof: prove("secret", byWorker, sent, answer.Nonce)})
			recorded = slices.Concat(head(tagHandshake, len(sent)), sent, head(tagHandshake, len(proof)), proof)
		})
		if _, ok := r.shakeHands(here); ok == replays {
			t.Errorf("replay %v: taken %v", replays, ok)
		}
		here.Close()
		all.Wait()
	}
}

// TestCrowd checks that connections that say nothing, more than rank 0 greets at a time, do
// not keep the ranks from joining.
func TestCrowd(t *testing.T) {
	t.Parallel()
	at := freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() {
		l, err := Rendezvous(ctx, member(0, 2, at))
		if err == nil {
			defer l.closeAll()
		}
		done <- err
	}()
	silent := make([]net.Conn, maxGreetings+20)
	for i := range silent {
		silent[i] = dialed(t, at)
	}
	silent[0].SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("the oldest of too many connections is not closed: %v", err)
	}
	l, err := Rendezvous(ctx, member(1, 2, at))
	if err != nil {
		t.Fatal(err)
	}
	defer l.closeAll()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestReason checks that any reason fits into a handshake and holds nothing that a terminal
// obeys.
func TestReason(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("<", 9999), strings.Repeat("\x1b[31m", 999), strings.Repeat("é", 9999), strings.Repeat("\xff", 9999)} {
		var b strings.Builder
		conn := writer{&b}
		if _, err := writeHandshake(conn, handshake{Protocol: protocol, Error: reason(text), Program: strings.Repeat("f", 64)}); err != nil || b.Len() > maxHandshake || strings.Contains(b.String(), "\x1b") {
			t.Errorf("%d bytes, %v", b.Len(), err)
		}
	}
}

// A writer is a connection that only writes.
type writer struct{ io.Writer }

func (writer) Read([]byte) (int, error)         { return 0, io.EOF }
func (writer) Close() error                     { return nil }
func (writer) LocalAddr() net.Addr              { return nil }
func (writer) RemoteAddr() net.Addr             { return nil }
func (writer) SetDeadline(time.Time) error      { return nil }
func (writer) SetReadDeadline(time.Time) error  { return nil }
func (writer) SetWriteDeadline(time.Time) error { return nil }

// stranger returns a connection on which somebody sends data and reads whatever comes.
func stranger(data []byte) net.Conn {
	here, there := net.Pipe()
	go io.Copy(io.Discard, there)
	go func() {
		there.Write(data)
		there.Close()
	}()
	return here
}

// threadless returns a link without a thread of its own, for many of them.
func threadless(l Launch) *TCP {
	return &TCP{launch: l, peers: make([]*peer, l.Ranks), lost: make(chan struct{})}
}

// FuzzHandshake checks that nobody who does not know the secret takes part in a job, or
// leads a rank to believe that it has joined one.
func FuzzHandshake(f *testing.F) {
	frame := func(text string) []byte { return append(head(tagHandshake, len(text)), text...) }
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(frame(`{"iflowc":"ranks 3","rank":1,"ranks":2,"nonce":"a"}`))
	f.Add(slices.Concat(frame(`{"iflowc":"ranks 3","nonce":"a","proof":"b"}`), frame(`{"iflowc":"ranks 3"}`)))
	f.Add(slices.Concat(frame(`{"iflowc":"ranks 2"}`), frame(`{"iflowc":"ranks 2","error":"no"}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		own := handshake{Protocol: protocol, Ranks: 2}
		r := &reception{own: own, secret: "secret", state: &wait{}}
		conn := stranger(data)
		if _, ok := r.shakeHands(conn); ok {
			t.Errorf("rank 0 takes %q", data)
		}
		conn.Close()
		conn = stranger(data)
		defer conn.Close()
		own.Rank = 1
		l := threadless(Launch{Rank: 1, Ranks: 2, secret: "secret"})
		if verdict, err := l.shakeHands(t.Context(), conn, own, &wait{}); err == nil {
			t.Errorf("a rank joins %q: %+v", data, verdict)
		}
	})
}

// FuzzFrames checks that no bytes of another rank make a rank wait, panic, or believe what
// that rank cannot know: it is lost, or the rank that it names.
func FuzzFrames(f *testing.F) {
	frame := func(tag Tag, data ...byte) []byte { return append(head(tag, len(data)), data...) }
	for _, seed := range [][]byte{
		frame(Result, 1, 2, 3, 4), frame(tagGone, 255, 255, 255, 255), slices.Concat(frame(tagGone, 255, 255, 255, 255), frame(tagGone, 255, 255, 255, 255)),
		frame(tagGone, 2, 0, 0, 0), frame(tagBye, 1), frame(Control, 1), frame(99, 1), head(Result, maxFrame), head(Control, 0),
	} {
		f.Add(true, seed)
		f.Add(false, seed)
	}
	f.Fuzz(func(t *testing.T, leads bool, data []byte) {
		l, from := threadless(Launch{Rank: 1, Ranks: 3}), 0
		if leads {
			l, from = threadless(Launch{Rank: 0, Ranks: 3}), 1
		}
		p := newPeer(stranger(data))
		defer p.conn.Close()
		l.peers[from] = p
		l.listen(p, from)
		left := !leads && l.leaving.Load()
		if lost := l.Failed(); lost < 0 && !left || lost >= 3 {
			t.Errorf("%q of rank %d: lost rank %d", data, from, lost)
		}
		if leads && l.leaving.Load() {
			t.Errorf("rank 0 leaves by %q", data)
		}
	})
}

// TestHostileFrames checks what a rank says about messages that no rank sends.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	gone := binary.LittleEndian.AppendUint32(nil, 1<<32-1)
	for want, c := range map[string]struct {
		tag  Tag
		data []byte
	}{"lost rank 4294967295 of 2": {tagGone, gone}, "the tag 3": {tagBye, []byte{1}}, "the tag 16": {Control, []byte{1}}, "the tag 99": {99, []byte{1}}} {
		l := threadless(Launch{Ranks: 2})
		p := newPeer(stranger(append(head(c.tag, len(c.data)), c.data...)))
		l.peers[1] = p
		l.listen(p, 1)
		if err := l.err(); err == nil || !strings.Contains(err.Error(), "rank 1 of the model: bug: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	l, p := threadless(Launch{Ranks: 2}), newPeer(nil)
	p.waiting = maxWaiting - 2*perMessage
	for _, refused := range []bool{false, true} {
		if err := l.receive(p, Result, make([]byte, 8)); (err != nil) != refused {
			t.Errorf("%d bytes wait: %v", p.waiting, err)
		}
	}
	if before := p.waiting; p.take(Result) == nil || p.waiting != before-8-perMessage {
		t.Errorf("%d bytes wait after one message of %d was taken", p.waiting, before)
	}
}
