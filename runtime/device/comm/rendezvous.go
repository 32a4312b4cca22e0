//go:build unix

package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
)

// RendezvousTimeout is how long the ranks of a torchrun-style job wait for each other;
// several machines may not start at the same time.
const RendezvousTimeout = 5 * time.Minute

const (
	handshakeTimeout = 10 * time.Second // between connecting and the handshake
	dialTimeout      = 5 * time.Second  // of an attempt to connect; Linux repeats its first packet after 1 s and 3 s
	retryEvery       = 100 * time.Millisecond
	tellTimeout      = 3 * time.Second // how long a rank that cannot take part tries to tell the others why
)

// A Member is what a rank brings to a rendezvous.
type Member struct {
	Launch
	Program string                           // hash of the program
	Unfit   error                            // why this rank cannot take part; it only tells the others
	Limit   time.Duration                    // how long to wait for the others
	Say     func(format string, args ...any) // prints what the rank waits for; nil: nothing does

	sayFirst, sayEvery time.Duration // when it does; 0: the defaults
}

// A handshake is the first message of a rank, and each of rank 0's two answers: it has
// received the message, and all ranks are there.
type handshake struct {
	Protocol string `json:"iflowc"`
	Rank     int    `json:"rank"`
	Ranks    int    `json:"ranks,omitempty"`
	Program  string `json:"program,omitempty"` // hash of the program
	Error    string `json:"error,omitempty"`   // why Rank cannot take part; it ends the job
}

// Every protocol starts with protocols, so that a rank of another version is not taken
// for a stranger.
const (
	protocols = "ranks "
	protocol  = protocols + "2"
)

// maxHandshake is the maximum size of a handshake in bytes.
const maxHandshake = 4096

// fault returns the error that a handshake reports, or nil.
func (h *handshake) fault() error {
	if h.Error == "" {
		return nil
	}
	text := strings.Map(func(r rune) rune { // it came through a port
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, h.Error)
	return &RankError{Rank: h.Rank, Err: errors.New(text)}
}

// Rendezvous connects the ranks of a job without MPI: rank 0 listens at the launch's
// address, and the others retry to dial it until they succeed. All ranks return an error
// if one of them is unfit, has another number of ranks or runs a program with another
// hash, or if the limit has passed.
func Rendezvous(ctx context.Context, m Member) (*TCP, error) {
	limit := m.Limit
	if m.Unfit != nil {
		limit = min(limit, tellTimeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timeout after %v", limit))
	defer cancel()
	own := handshake{Protocol: protocol, Rank: m.Rank, Ranks: m.Ranks, Program: m.Program}
	if m.Unfit != nil {
		text := m.Unfit.Error()
		own.Error = text[:min(len(text), maxHandshake/2)]
	}
	link := newTCP(m.Launch)
	var state wait
	go state.report(ctx, &m)
	var err error
	if m.Rank == 0 {
		err = link.acceptAll(ctx, own, &state)
	} else {
		err = link.dial(ctx, own, &state)
	}
	if unfit := own.fault(); unfit != nil {
		err = unfit
	}
	if err != nil {
		link.closeAll()
		return nil, err
	}
	link.start()
	return link, nil
}

// acceptAll waits for connections from all other ranks and tells them the result.
func (l *TCP) acceptAll(ctx context.Context, own handshake, state *wait) error {
	server, err := net.Listen("tcp", listenAt(l.launch.Master))
	if err != nil {
		return fmt.Errorf("rank 0 cannot listen at MASTER_ADDR and MASTER_PORT: %w; choose a free port", err)
	}
	defer server.Close()
	arrivals := make(chan arrival)
	greeting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go greet(greeting, conn, arrivals) // concurrently, so that a silent client does not block the others
		}
	}()
	verdict := handshake{Protocol: protocol, Rank: own.Rank, Error: own.Error}
	for verdict.Error == "" && len(l.absent()) > 0 {
		state.set(nil, "rank 0 waits at %s; of %d ranks these have not connected: %v; start them with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE", l.launch.Master, own.Ranks, l.absent())
		select {
		case g := <-arrivals:
			if why := l.refuse(own, g.hello); why != "" {
				verdict.Rank, verdict.Error = g.hello.Rank, why
				tell(g.conn, verdict)
			} else {
				l.peers[g.hello.Rank] = newPeer(g.conn)
			}
		case <-ctx.Done():
			late := fmt.Errorf("rank 0 listens at %s, but of %d ranks these have not connected: %v (%w); set the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE on all ranks",
				l.launch.Master, l.launch.Ranks, l.absent(), context.Cause(ctx))
			verdict.Error = late.Error()
			l.tellPeers(verdict)
			return late
		}
	}
	err = l.tellPeers(verdict)
	if verdict.Error != "" {
		l.tellOthers(ctx, arrivals, verdict)
		return verdict.fault()
	}
	return err
}

// tellPeers sends a verdict to the ranks that have connected. It returns the first error.
func (l *TCP) tellPeers(verdict handshake) (first error) {
	for r, p := range l.peers {
		if p == nil {
			continue
		}
		if err := writeHandshake(p.conn, verdict); err != nil && first == nil {
			first = &RankError{Rank: r, Err: err}
		}
	}
	return first
}

// absent returns the ranks that rank 0 waits for.
func (l *TCP) absent() (list []int) {
	for r := 1; r < len(l.peers); r++ {
		if l.peers[r] == nil {
			list = append(list, r)
		}
	}
	return list
}

// tellOthers sends a verdict to ranks that arrive late.
func (l *TCP) tellOthers(ctx context.Context, arrivals <-chan arrival, verdict handshake) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	untold := l.absent()
	isTold := func(rank int) { untold = slices.DeleteFunc(untold, func(r int) bool { return r == rank }) }
	for isTold(verdict.Rank); len(untold) > 0; {
		select {
		case g := <-arrivals:
			tell(g.conn, verdict)
			isTold(g.hello.Rank)
		case <-ctx.Done():
			return
		}
	}
}

// tell sends a verdict and closes the connection.
func tell(conn net.Conn, verdict handshake) {
	conn.SetDeadline(time.Now().Add(tellTimeout))
	writeHandshake(conn, verdict) // without it, the rank finds the connection closed
	conn.Close()
}

// An arrival is a connection that has sent its handshake and received the first answer.
type arrival struct {
	conn  net.Conn
	hello handshake
}

// greet reads the handshake of a new connection and answers it.
func greet(ctx context.Context, conn net.Conn, arrivals chan<- arrival) {
	g := arrival{conn: conn}
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if readHandshake(conn, &g.hello) != nil || !strings.HasPrefix(g.hello.Protocol, protocols) {
		conn.Close() // not a rank
		return
	}
	if writeHandshake(conn, handshake{Protocol: protocol}) != nil {
		conn.Close()
		return
	}
	conn.SetDeadline(time.Time{})
	select {
	case arrivals <- g:
	case <-ctx.Done():
		conn.Close()
	}
}

// refuse returns the reason to refuse a rank, or "".
func (l *TCP) refuse(own, hello handshake) string {
	switch {
	case hello.Protocol != own.Protocol:
		return fmt.Sprintf("it was compiled by another version of iflowc (protocol %q, rank 0 has %q); start the same program on all ranks", hello.Protocol, own.Protocol)
	case hello.Error != "":
		return hello.Error
	case hello.Ranks != own.Ranks:
		return fmt.Sprintf("it has WORLD_SIZE=%d, but rank 0 has %d", hello.Ranks, own.Ranks)
	case hello.Program != own.Program:
		return fmt.Sprintf("it runs a different program (%.12s, rank 0 runs %.12s); start the same program on all ranks", hello.Program, own.Program)
	case hello.Rank < 1 || hello.Rank >= own.Ranks || l.peers[hello.Rank] != nil:
		return fmt.Sprintf("another process already has RANK=%d", hello.Rank)
	}
	return ""
}

// dial connects to rank 0 and waits for the others. It retries while nothing listens at
// the address, or something other than rank 0.
func (l *TCP) dial(ctx context.Context, own handshake, state *wait) error {
	dialer := net.Dialer{Timeout: dialTimeout}
	var why error
	for {
		conn, err := dialer.DialContext(ctx, "tcp", l.launch.Master)
		if err == nil {
			var verdict handshake
			if verdict, err = l.shakeHands(ctx, conn, own, state); err == nil && verdict.Error == "" {
				l.peers[0] = newPeer(conn)
				return nil
			}
			conn.Close()
			if err == nil {
				return verdict.fault()
			}
		}
		if conn != nil || why == nil { // keep an error of a service that answered rather than "connection refused"
			why = err
		}
		state.set(err, "rank %d waits for rank 0 at %s: %v", own.Rank, l.launch.Master, why)
		select {
		case <-ctx.Done():
			return fmt.Errorf("rank %d cannot connect to rank 0 at %s (%w; %w); set the same MASTER_ADDR and MASTER_PORT on all ranks", own.Rank, l.launch.Master, context.Cause(ctx), why)
		case <-time.After(retryEvery):
		}
	}
}

// shakeHands sends this rank's handshake and returns the verdict.
func (l *TCP) shakeHands(ctx context.Context, conn net.Conn, own handshake, state *wait) (verdict handshake, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err = writeHandshake(conn, own); err == nil {
		err = readHandshake(conn, &verdict)
	}
	if err == nil && !strings.HasPrefix(verdict.Protocol, protocols) {
		err = errors.New("unknown protocol")
	}
	if err != nil {
		return verdict, fmt.Errorf("the service at this address is not a rank: %w", err)
	}
	if verdict.Error != "" {
		return verdict, nil
	}
	conn.SetDeadline(time.Time{})
	state.set(nil, "rank %d is connected to rank 0 at %s, which waits for other ranks and prints their numbers", own.Rank, l.launch.Master)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	err = readHandshake(conn, &verdict)
	if !stop() {
		return verdict, errors.New("it is there, but waits for other ranks and prints their numbers")
	}
	if err != nil {
		return verdict, fmt.Errorf("rank 0 ended the connection before all ranks were there: %w", err)
	}
	return verdict, nil
}

// listenAt returns the address at which rank 0 listens: the loopback interface for
// loopback addresses, else all interfaces, since the name may resolve to an address
// that this machine does not own.
func listenAt(master string) string {
	host, port, err := net.SplitHostPort(master)
	if ip := net.ParseIP(host); err != nil || host == "localhost" || ip != nil && ip.IsLoopback() {
		return master
	}
	return net.JoinHostPort("", port)
}

func writeHandshake(conn net.Conn, h handshake) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = conn.Write(slices.Concat(head(tagHandshake, len(data)), data))
	return err
}

func readHandshake(conn net.Conn, h *handshake) error {
	tag, data, err := readFrame(conn, maxHandshake)
	if err == nil && tag != tagHandshake {
		err = errors.New("no handshake")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, h)
}
