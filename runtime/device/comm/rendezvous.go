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

// RendezvousTimeout is how long ranks that torchrun's variables name wait for each
// other: those of several machines are not started at once.
const RendezvousTimeout = 5 * time.Minute

// handshakeTimeout is how long one that has connected may take to say who it is.
const handshakeTimeout = 10 * time.Second

// A handshake is what a rank says first, and rank 0's answer.
type handshake struct {
	Protocol string `json:"iflowc"`
	Rank     int    `json:"rank"`
	Ranks    int    `json:"ranks"`
	Program  string `json:"program"` // its hash
	Error    string `json:"error,omitempty"`
}

const protocol = "ranks 1"

// Rendezvous connects the ranks of a job that no MPI has started: rank 0 listens at the
// launch's address, the others dial it until it is there. All must run the same
// program, by its hash.
func Rendezvous(ctx context.Context, l Launch, program string, limit time.Duration) (*TCP, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%v have passed", limit))
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

// acceptAll waits at the address for all others.
func (l *TCP) acceptAll(ctx context.Context, own handshake) error {
	server, err := net.Listen("tcp", listenAt(l.launch.Master))
	if err != nil {
		return fmt.Errorf("rank 0 cannot wait for the others at MASTER_ADDR and MASTER_PORT: %w; name a port that is free", err)
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
			go greet(ctx, conn, arrivals) // one that says nothing must not keep off the others
		}
	}()
	for missing := l.launch.Ranks - 1; missing > 0; missing-- {
		select {
		case g := <-arrivals:
			refusal := l.refuse(own, g.said)
			err := writeHandshake(g.conn, handshake{Protocol: protocol, Error: refusal})
			if err != nil || refusal != "" {
				g.conn.Close()
				return &RankError{Rank: g.said.Rank, Err: cmp.Or(err, errors.New(refusal))}
			}
			l.peers[g.said.Rank] = newPeer(g.conn)
		case <-ctx.Done():
			var absent []int
			for r := 1; r < l.launch.Ranks; r++ {
				if l.peers[r] == nil {
					absent = append(absent, r)
				}
			}
			return fmt.Errorf("rank 0 waits at %s, and of %d ranks these have not come: %v (%w); all need the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE",
				l.launch.Master, l.launch.Ranks, absent, context.Cause(ctx))
		}
	}
	return nil
}

// An arrival is one that has connected and says which rank it is.
type arrival struct {
	conn net.Conn
	said handshake
}

// greet hears who has connected.
func greet(ctx context.Context, conn net.Conn, arrivals chan<- arrival) {
	g := arrival{conn: conn}
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if readHandshake(conn, &g.said) != nil || g.said.Protocol != protocol {
		conn.Close() // no rank
		return
	}
	conn.SetDeadline(time.Time{})
	select {
	case arrivals <- g:
	case <-ctx.Done():
		conn.Close()
	}
}

// refuse says what keeps a rank out; "": nothing does.
func (l *TCP) refuse(own, said handshake) string {
	switch {
	case said.Ranks != own.Ranks:
		return fmt.Sprintf("it has WORLD_SIZE=%d, rank 0 has %d", said.Ranks, own.Ranks)
	case said.Program != own.Program:
		return fmt.Sprintf("it runs another program (%.12s, rank 0 %.12s); start the same one everywhere", said.Program, own.Program)
	case said.Rank < 1 || said.Rank >= own.Ranks || l.peers[said.Rank] != nil:
		return fmt.Sprintf("a second process has RANK=%d", said.Rank)
	}
	return ""
}

// dial reaches rank 0, which may not be there yet, nor what listens there be it.
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
				return fmt.Errorf("rank 0 refuses rank %d: %s", own.Rank, answer.Error)
			}
		}
		if conn != nil || why == nil { // what somebody answers says more than that nobody does
			why = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("rank %d does not reach rank 0 at %s (%w; %w); all ranks need the same MASTER_ADDR and MASTER_PORT", own.Rank, l.launch.Master, context.Cause(ctx), why)
		case <-time.After(retryEvery):
		}
	}
}

// retryEvery is how often rank 0 is looked for.
const retryEvery = 100 * time.Millisecond

// shakeHands says who this is and hears the answer.
func shakeHands(conn net.Conn, own handshake) (answer handshake, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err = writeHandshake(conn, own); err == nil {
		err = readHandshake(conn, &answer)
	}
	if err == nil && answer.Protocol != protocol {
		err = errors.New("a protocol that is not this program's")
	}
	if err != nil {
		return answer, fmt.Errorf("what listens there does not answer as a rank: %w", err)
	}
	return answer, conn.SetDeadline(time.Time{})
}

// listenAt is where rank 0 listens: on this machine alone where nobody else can
// dial the address, else on all networks, since a name may stand for an address
// that is not this machine's own.
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
		err = errors.New("no hello")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, h)
}
