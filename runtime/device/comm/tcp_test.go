//go:build unix

package comm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tries counts the ports that freePort has tried, so that no two tests get the same one.
var tries atomic.Int64

// freePort returns an address with an unused port that no outgoing connection takes. Other
// test processes begin elsewhere.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := 10000 + (int64(os.Getpid())*97+tries.Add(1))%20000
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// member returns what a rank brings that waits as long as necessary.
func member(rank, ranks int, at string) Member {
	return Member{Launch: Launch{Rank: rank, Ranks: ranks, At: -1, Master: at}, Program: "program", Limit: time.Hour}
}

// rendezvous connects ranks in this process, each after change has modified what it
// brings.
func rendezvous(t *testing.T, ranks int, change func(m *Member)) ([]*TCP, []error) {
	t.Helper()
	at := freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	links, errs := make([]*TCP, ranks), make([]error, ranks)
	var all sync.WaitGroup
	for r := range ranks {
		m := member(r, ranks, at)
		if change != nil {
			change(&m)
		}
		all.Go(func() {
			var told *RankError
			if links[r], errs[r] = Rendezvous(ctx, m); errs[r] != nil && !errors.As(errs[r], &told) {
				cancel() // the others would wait
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

// TestRendezvousRefuses checks that all ranks report why they do not belong together,
// whichever of them is wrong.
func TestRendezvousRefuses(t *testing.T) {
	t.Parallel()
	unfit := errors.New("the model is compiled for 4 ranks")
	for name, c := range map[string]struct {
		ranks  int
		change func(m *Member)
		want   string // error of all ranks
	}{
		"program of rank 1":    {3, func(m *Member) { m.Program = fmt.Sprint("program ", m.Rank == 1) }, "rank 1 of the model: it runs a different program"},
		"program of rank 0":    {2, func(m *Member) { m.Program = fmt.Sprint("program ", m.Rank) }, "rank 1 of the model: it runs a different program"},
		"WORLD_SIZE of rank 2": {3, func(m *Member) { m.Ranks += m.Rank / 2 }, "rank 2 of the model: it has WORLD_SIZE=4, but rank 0 has 3"},
		"WORLD_SIZE of rank 0": {2, func(m *Member) { m.Ranks -= m.Rank; m.Ranks++ }, "rank 1 of the model: it has WORLD_SIZE=2, but rank 0 has 3"},
		"model of rank 0":      {3, func(m *Member) { m.Unfit = map[int]error{0: unfit}[m.Rank] }, "rank 0 of the model: the model is compiled for 4 ranks"},
		"model of rank 2":      {3, func(m *Member) { m.Unfit = map[int]error{2: unfit}[m.Rank] }, "rank 2 of the model: the model is compiled for 4 ranks"},
		"twice":                {3, func(m *Member) { m.Rank = min(m.Rank, 1) }, "rank 1 of the model: another process already has RANK=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := rendezvous(t, c.ranks, c.change)
			for r, err := range errs {
				var lost *RankError
				if !errors.As(err, &lost) || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("rank %d: %v, expected %q", r, err, c.want)
				}
			}
		})
	}
}

// TestRendezvousTwoLeaders checks the error of a second rank 0.
func TestRendezvousTwoLeaders(t *testing.T) {
	t.Parallel()
	at := freePort(t)
	other, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := Rendezvous(t.Context(), member(0, 2, at)); err == nil || !strings.Contains(err.Error(), "choose a free port") {
		t.Errorf("%v, expected an error about the port", err)
	}
}

// TestRendezvousVersions checks the errors of ranks of different versions.
func TestRendezvousVersions(t *testing.T) {
	t.Parallel()
	m := member(0, 2, freePort(t))
	done := make(chan error)
	go func() {
		_, err := Rendezvous(t.Context(), m)
		done <- err
	}()
	var conn net.Conn
	for err := error(nil); conn == nil; time.Sleep(10 * time.Millisecond) {
		if conn, err = net.Dial("tcp", m.Master); err != nil {
			conn = nil
		}
	}
	defer conn.Close()
	if _, err := writeHandshake(conn, handshake{Protocol: "ranks 1", Rank: 1, Ranks: 2, Program: "program"}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "rank 1 of the model: it was compiled by another version") {
		t.Errorf("%v, expected an error about the version", err)
	}
}

// TestRendezvousSays checks that ranks print what they wait for.
func TestRendezvousSays(t *testing.T) {
	t.Parallel()
	free, silent := freePort(t), freePort(t)
	for name, c := range map[string]struct {
		rank int
		at   string
		want []string
	}{
		"rank 0":       {0, free, []string{"rank 0 waits at " + free, "of 3 ranks these have not connected: [1 2]", "WORLD_SIZE"}},
		"unresolvable": {1, "name.invalid:1", []string{"rank 1 waits for rank 0 at name.invalid:1", "set MASTER_ADDR"}},
		"nobody":       {1, silent, []string{"rank 1 waits for rank 0 at " + silent, "start rank 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := member(c.rank, 3, c.at)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			lines := make(chan string, 1)
			m.sayFirst, m.sayEvery = 50*time.Millisecond, 20*time.Millisecond
			m.Say = func(format string, args ...any) {
				select {
				case lines <- fmt.Sprintf(format, args...):
				default:
				}
			}
			go Rendezvous(ctx, m)
			for range 2 { // it repeats them
				line := <-lines
				for _, want := range c.want {
					if !strings.Contains(line, want) {
						t.Errorf("%q, expected %q", line, want)
					}
				}
			}
		})
	}
}

// TestRendezvousMissing checks what a connected rank prints while another is missing, and its
// error if rank 0 or itself gives up.
func TestRendezvousMissing(t *testing.T) {
	t.Parallel()
	for rank, want := range []string{"rank 0 of the model: rank 0 listens at ;not connected: [2] (context canceled)", "rank 1 cannot connect to rank 0;waits for other ranks"} {
		t.Run(fmt.Sprint("rank ", rank, " gives up"), func(t *testing.T) {
			t.Parallel()
			at := freePort(t)
			ctx, cancel := context.WithCancel(t.Context())
			contexts := []context.Context{t.Context(), t.Context()}
			contexts[rank] = ctx
			here := member(1, 3, at)
			here.sayFirst, here.sayEvery = 10*time.Millisecond, 10*time.Millisecond
			here.Say = func(format string, args ...any) {
				if strings.Contains(fmt.Sprintf(format, args...), "rank 1 is connected to rank 0") {
					cancel()
				}
			}
			go Rendezvous(contexts[0], member(0, 3, at))
			_, err := Rendezvous(contexts[1], here)
			for _, text := range strings.Split(want, ";") {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%v, expected %q", err, text)
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
		m := member(rank, 3, at)
		m.Limit = 200 * time.Millisecond
		_, err := Rendezvous(t.Context(), m)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Rendezvous(ctx, member(1, 3, at)); !errors.Is(err, context.Canceled) {
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
		l, err := Rendezvous(t.Context(), member(0, 2, at))
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
	l, err := Rendezvous(t.Context(), member(1, 2, at))
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
	m := member(1, 2, other.Addr().String())
	m.Limit = time.Second
	_, err = Rendezvous(t.Context(), m)
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
