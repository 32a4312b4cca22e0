//go:build unix

package comm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// RendezvousTimeout is how long the ranks of a torchrun-style job wait for each other;
// several machines may not start at the same time.
const RendezvousTimeout = 5 * time.Minute

// handshakeTimeout limits the time between connecting and the handshake.
const handshakeTimeout = 10 * time.Second

// A handshake is the first message of a rank, and rank 0's answer.
type handshake struct {
	Protocol string `json:"iflowc"`
	Rank     int    `json:"rank"`
	Ranks    int    `json:"ranks"`
	Program  string `json:"program"` // hash of the program
	Error    string `json:"error,omitempty"`
}

const protocol = "ranks 1"

// Rendezvous connects the ranks of a job without MPI: rank 0 listens at the launch's
// address, and the others retry to dial it until they succeed. It returns an error if
// the ranks run programs with different hashes, or if limit has passed.
func Rendezvous(ctx context.Context, l Launch, program string, limit time.Duration) (*TCP, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timeout after %v", limit))
	defer cancel()
	own := handshake{Protocol: protocol, Rank: l.Rank, Ranks: l.Ranks, Program: program}
	link := newTCP(l)
	var err error
	if l.Rank == 0 {
		err = link.acceptAll(ctx, own)
	} else {
		err = link.dial(ctx, own)
	}
	if err != nil {
		link.closeAll()
		return nil, err
	}
	link.start()
	return link, nil
}

// acceptAll waits for connections from all other ranks.
func (l *TCP) acceptAll(ctx context.Context, own handshake) error {
	server, err := net.Listen("tcp", listenAt(l.launch.Master))
	if err != nil {
		return fmt.Errorf("rank 0 cannot listen at MASTER_ADDR and MASTER_PORT: %w; choose a free port", err)
	}
	defer server.Close()
	arrivals := make(chan arrival)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go greet(ctx, conn, arrivals) // concurrently, so that a silent client does not block the others
		}
	}()
	for missing := l.launch.Ranks - 1; missing > 0; missing-- {
		select {
		case g := <-arrivals:
			refusal := l.refuse(own, g.hello)
			err := writeHandshake(g.conn, handshake{Protocol: protocol, Error: refusal})
			if err != nil || refusal != "" {
				g.conn.Close()
				return &RankError{Rank: g.hello.Rank, Err: cmp.Or(err, errors.New(refusal))}
			}
			l.peers[g.hello.Rank] = newPeer(g.conn)
		case <-ctx.Done():
			var absent []int
			for r := 1; r < l.launch.Ranks; r++ {
				if l.peers[r] == nil {
					absent = append(absent, r)
				}
			}
			return fmt.Errorf("rank 0 listens at %s, but of %d ranks these have not connected: %v (%w); set the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE on all ranks",
				l.launch.Master, l.launch.Ranks, absent, context.Cause(ctx))
		}
	}
	return nil
}

// An arrival is a connection that has sent its handshake.
type arrival struct {
	conn  net.Conn
	hello handshake
}

// greet reads the handshake of a new connection.
func greet(ctx context.Context, conn net.Conn, arrivals chan<- arrival) {
	g := arrival{conn: conn}
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if readHandshake(conn, &g.hello) != nil || g.hello.Protocol != protocol {
		conn.Close() // not a rank
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
	case hello.Ranks != own.Ranks:
		return fmt.Sprintf("it has WORLD_SIZE=%d, but rank 0 has %d", hello.Ranks, own.Ranks)
	case hello.Program != own.Program:
		return fmt.Sprintf("it runs a different program (%.12s, rank 0 runs %.12s); start the same program on all ranks", hello.Program, own.Program)
	case hello.Rank < 1 || hello.Rank >= own.Ranks || l.peers[hello.Rank] != nil:
		return fmt.Sprintf("another process already has RANK=%d", hello.Rank)
	}
	return ""
}

// dial connects to rank 0. It retries while nothing listens at the address, or
// something other than rank 0.
func (l *TCP) dial(ctx context.Context, own handshake) error {
	var dialer net.Dialer
	var why error
	for {
		conn, err := dialer.DialContext(ctx, "tcp", l.launch.Master)
		if err == nil {
			var answer handshake
			if answer, err = shakeHands(conn, own); err == nil && answer.Error == "" {
				l.peers[0] = newPeer(conn)
				return nil
			}
			conn.Close()
			if err == nil {
				return fmt.Errorf("rank 0 refused rank %d: %s", own.Rank, answer.Error)
			}
		}
		if conn != nil || why == nil { // keep an error of a service that answered rather than "connection refused"
			why = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("rank %d cannot connect to rank 0 at %s (%w; %w); set the same MASTER_ADDR and MASTER_PORT on all ranks", own.Rank, l.launch.Master, context.Cause(ctx), why)
		case <-time.After(retryEvery):
		}
	}
}

// retryEvery is the interval between attempts to connect to rank 0.
const retryEvery = 100 * time.Millisecond

// shakeHands sends this rank's handshake and returns the answer.
func shakeHands(conn net.Conn, own handshake) (answer handshake, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err = writeHandshake(conn, own); err == nil {
		err = readHandshake(conn, &answer)
	}
	if err == nil && answer.Protocol != protocol {
		err = errors.New("unknown protocol")
	}
	if err != nil {
		return answer, fmt.Errorf("the service at this address is not a rank: %w", err)
	}
	return answer, conn.SetDeadline(time.Time{})
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
	tag, data, err := readFrame(conn, 4096)
	if err == nil && tag != tagHandshake {
		err = errors.New("no handshake")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, h)
}
