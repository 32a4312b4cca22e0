//go:build unix

package comm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// freePort returns an address with an unused port.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// rendezvous connects ranks in this process, each after change has modified its launch.
func rendezvous(t *testing.T, ranks int, change func(l *Launch, program *string)) ([]*TCP, []error) {
	t.Helper()
	at := freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	links, errs := make([]*TCP, ranks), make([]error, ranks)
	var all sync.WaitGroup
	for r := range ranks {
		l, program := Launch{Rank: r, Ranks: ranks, At: -1, Master: at}, "program"
		if change != nil {
			change(&l, &program)
		}
		all.Go(func() {
			if links[r], errs[r] = Rendezvous(ctx, l, program, time.Hour); errs[r] != nil {
				cancel() // do not wait for it
			}
		})
	}
	all.Wait()
	for _, l := range links {
		if l != nil {
			t.Cleanup(l.closeAll)
		}
	}
	return links, errs
}

// TestLink checks that messages of each tag arrive in order, large ones too, and that
// the ranks leave without a reported loss.
func TestLink(t *testing.T) {
	t.Parallel()
	links, errs := rendezvous(t, 3, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	large := slices.Repeat([]byte("0123456789abcdef"), 1<<18)
	var all sync.WaitGroup
	for r := 1; r < 3; r++ {
		all.Go(func() {
			if err := errors.Join(links[r].Send(0, Result, large), links[r].Send(0, Pong, []byte{byte(r)}), links[r].Send(0, Result, []byte("second"))); err != nil {
				t.Error(err)
			}
			for _, want := range []string{"do this", "do that"} {
				if got, err := links[r].Await(0, Control, time.Minute); string(got) != want || err != nil {
					t.Errorf("rank %d: %q, %v, expected %q", r, got, err, want)
				}
			}
			if got, err := links[r].Await(0, Control, time.Millisecond); got != nil || err != nil {
				t.Errorf("rank %d: %q, %v without a message", r, got, err)
			}
		})
		if err := errors.Join(links[0].Send(r, Control, []byte("do this")), links[0].Send(r, Control, []byte("do that"))); err != nil {
			t.Error(err)
		}
	}
	for r := 1; r < 3; r++ {
		pong, first, second := make([]byte, 1), make([]byte, len(large)), make([]byte, 6)
		err := errors.Join(links[0].Recv(r, Pong, pong), links[0].Recv(r, Result, first), links[0].Recv(r, Result, second))
		if err != nil || pong[0] != byte(r) || !slices.Equal(first, large) || string(second) != "second" {
			t.Errorf("rank 0 received from rank %d: %v, %d, %q", r, err, pong, second)
		}
		if n, err := links[0].Probe(r, Result); n != -1 || err != nil {
			t.Errorf("a third message of %d bytes, %v", n, err)
		}
	}
	if err := links[1].Send(2, Control, []byte("x")); err == nil {
		t.Error("rank 1 can send to rank 2")
	}
	all.Wait()
	for r := range links {
		all.Go(func() {
			links[r].Do(func() {
				if err := links[r].Flush(); err != nil {
					t.Error(err)
				}
			})
			links[r].Leave()
		})
	}
	all.Wait()
	for r, l := range links {
		if l.Failed() >= 0 {
			t.Errorf("rank %d has lost rank %d", r, l.Failed())
		}
	}
}

// TestLinkLost checks that a closed connection counts as a lost rank and that all
// others are informed.
func TestLinkLost(t *testing.T) {
	t.Parallel()
	links, errs := rendezvous(t, 3, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	links[2].peers[0].conn.Close()
	for _, r := range []int{0, 1} {
		<-links[r].Lost()
		_, err := links[r].Await(map[int]int{0: 1}[r], Control, time.Hour)
		var lost *RankError
		if !errors.As(err, &lost) || lost.Rank != 2 || links[r].Failed() != 2 {
			t.Errorf("rank %d: %v, expected to have lost rank 2", r, err)
		}
	}
	if err := links[0].Send(1, Control, []byte("x")); err == nil {
		t.Error("a job continues after the loss of a rank")
	}
}

// TestLinkSilent checks that a sender gives up a rank that does not read, and a
// receiver one that does not send.
func TestLinkSilent(t *testing.T) {
	t.Parallel()
	for _, say := range []bool{false, true} {
		here, there := net.Pipe() // unbuffered
		defer there.Close()
		l := newTCP(Launch{Ranks: 2})
		l.peers[1] = newPeer(here)
		l.SetTimeout(200 * time.Millisecond)
		var err error
		if say {
			err = l.Send(1, Control, []byte("x"))
		} else {
			err = l.Recv(1, Reply, make([]byte, 1))
		}
		var lost *RankError
		if !errors.As(err, &lost) || lost.Rank != 1 {
			t.Errorf("%v, expected to have lost rank 1", err)
		}
	}
}

// TestRendezvousRefuses checks the errors of ranks that do not belong together.
func TestRendezvousRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(l *Launch, program *string)
		want   []string // errors of rank 0 and of rank 1
	}{
		"program":     {func(l *Launch, p *string) { *p = fmt.Sprint("program ", l.Rank) }, []string{"rank 1 of the model: it runs a different program", "rank 0 refused rank 1: it runs a different program"}},
		"size":        {func(l *Launch, p *string) { l.Ranks += l.Rank }, []string{"it has WORLD_SIZE=3, but rank 0 has 2", "it has WORLD_SIZE=3"}},
		"twice":       {func(l *Launch, p *string) { l.Rank, l.Ranks = min(l.Rank, 1), 3 }, []string{"another process already has RANK=1", ""}},
		"two leaders": {func(l *Launch, p *string) { l.Rank = 0 }, []string{"choose a free port", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ranks := 2
			if name == "twice" {
				ranks = 3
			}
			_, errs := rendezvous(t, ranks, c.change)
			all := fmt.Sprint(errs)
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("%s, expected %q", all, want)
				}
			}
		})
	}
}

// TestRendezvousAlone checks that the error of a timeout contains the missing ranks and
// the address.
func TestRendezvousAlone(t *testing.T) {
	t.Parallel()
	at := freePort(t)
	for rank, want := range []string{"these have not connected: [1 2] (timeout after 200ms)", "rank 1 cannot connect to rank 0 at " + at} {
		_, err := Rendezvous(t.Context(), Launch{Rank: rank, Ranks: 3, Master: at}, "program", 200*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Rendezvous(ctx, Launch{Rank: 1, Ranks: 3, Master: at}, "program", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected context.Canceled", err)
	}
}

// TestRendezvousStrangers checks that other clients can neither join nor block the
// ranks, and that a rank reports a different service at rank 0's address.
func TestRendezvousStrangers(t *testing.T) {
	t.Parallel()
	at := freePort(t)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		l, err := Rendezvous(t.Context(), Launch{Rank: 0, Ranks: 2, Master: at}, "program", time.Hour)
		if err != nil {
			t.Error(err)
			return
		}
		l.closeAll()
	})
	for _, text := range []string{"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x02\x00\x00\x00\xff\xff\xff\xff", "\x02\x00\x00\x00\x02\x00\x00\x00{}"} {
		var conn net.Conn
		for err := error(nil); conn == nil; time.Sleep(10 * time.Millisecond) {
			if conn, err = net.Dial("tcp", at); err != nil {
				conn = nil
			}
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	l, err := Rendezvous(t.Context(), Launch{Rank: 1, Ranks: 2, Master: at}, "program", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l.closeAll()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all.Go(func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("220 mail.example.org ESMTP\r\n"))
			conn.Close()
		}
	})
	_, err = Rendezvous(t.Context(), Launch{Rank: 1, Ranks: 2, Master: other.Addr().String()}, "program", time.Second)
	other.Close()
	if err == nil || !strings.Contains(err.Error(), "is not a rank") {
		t.Errorf("%v, expected an error about another service", err)
	}
}

func TestListenAt(t *testing.T) {
	t.Parallel()
	for master, want := range map[string]string{
		"localhost:1": "localhost:1", "127.0.0.1:29500": "127.0.0.1:29500", "[::1]:5": "[::1]:5", "node-0:29500": ":29500", "10.0.0.1:29500": ":29500",
	} {
		if got := listenAt(master); got != want {
			t.Errorf("%s: %s, expected %s", master, got, want)
		}
	}
}
