//go:build unix

package comm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// RendezvousTimeout is how long the ranks of a torchrun-style job wait for each other;
// several machines may not start at the same time.
const RendezvousTimeout = 5 * time.Minute

const (
	dialTimeout = 5 * time.Second // of an attempt to connect; Linux repeats its first packet after 1 s and 3 s
	retryEvery  = 100 * time.Millisecond
	tellTimeout = 3 * time.Second // how long a rank that cannot take part tries to tell the others why
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
	own := handshake{Protocol: protocol, Rank: m.Rank, Ranks: m.Ranks, Program: m.Program, Job: m.Job}
	if m.Unfit != nil {
		own.Error = reason(m.Unfit.Error())
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
	door := &reception{own: own, secret: l.launch.secret, arrivals: arrivals, state: state}
	go door.open(greeting, server)
	verdict := handshake{Protocol: protocol, Rank: own.Rank, Error: own.Error}
	for verdict.Error == "" && len(l.absent()) > 0 {
		state.set(nil, "rank 0 waits at %s; of %d ranks these have not connected: %v; start them with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE", l.launch.Master, own.Ranks, l.absent())
		select {
		case g := <-arrivals:
			if why := l.refuse(own, g.hello); why != "" {
				verdict.Rank, verdict.Error = g.hello.Rank, reason(why)
				tell(g.conn, verdict)
			} else {
				l.peers[g.hello.Rank] = newPeer(g.conn)
			}
		case <-ctx.Done():
			late := fmt.Errorf("rank 0 listens at %s, but of %d ranks these have not connected: %v (%w); set the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE on all ranks%s",
				l.launch.Master, l.launch.Ranks, l.absent(), context.Cause(ctx), state.noted())
			verdict.Error = reason(late.Error())
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
		p.conn.SetDeadline(time.Now().Add(tellTimeout)) // one that does not read must not delay the others
		if _, err := writeHandshake(p.conn, verdict); err != nil && first == nil {
			first = &RankError{Rank: r, Err: err}
		}
		p.conn.SetDeadline(time.Time{})
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
	case hello.Rank < 1 || hello.Rank >= own.Ranks:
		return fmt.Sprintf("it has RANK=%d, expected 1 to %d", hello.Rank, own.Ranks-1)
	case l.peers[hello.Rank] != nil:
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

// shakeHands sends this rank's handshake, checks that rank 0 knows the secret, proves that
// this rank does, and returns the verdict.
func (l *TCP) shakeHands(ctx context.Context, conn net.Conn, own handshake, state *wait) (verdict handshake, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	var answer handshake
	own.Nonce = newNonce()
	hello, err := writeHandshake(conn, own)
	if err == nil {
		_, err = readHandshake(conn, &answer)
	}
	if err == nil && !strings.HasPrefix(answer.Protocol, protocols) {
		err = errors.New("unknown protocol")
	}
	if err == nil && answer.Error == "" && answer.Protocol != own.Protocol { // it explains this next
		_, err = readHandshake(conn, &answer)
	}
	switch {
	case err != nil:
		return verdict, fmt.Errorf("the service at this address is not a rank: %w", err)
	case answer.Error != "" && l.launch.secret != "": // it may be a stranger
		return verdict, fmt.Errorf("the process at this address says, without a proof of %s: %s", secretVariable, answer.Error)
	case answer.Error != "":
		return answer, nil
	case answer.Protocol != own.Protocol || !answer.proves(l.launch.secret, byLeader, hello, answer.Nonce):
		return verdict, fmt.Errorf("the process at this address has another %s; set the same on all ranks", secretVariable)
	}
	if _, err = writeHandshake(conn, handshake{Protocol: protocol, Proof: prove(l.launch.secret, byWorker, hello, answer.Nonce)}); err != nil {
		return verdict, fmt.Errorf("rank 0 ended the connection: %w", err)
	}
	conn.SetDeadline(time.Time{})
	state.set(nil, "rank %d is connected to rank 0 at %s, which waits for other ranks and prints their numbers", own.Rank, l.launch.Master)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	_, err = readHandshake(conn, &verdict)
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
