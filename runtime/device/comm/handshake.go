//go:build unix

package comm

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/kit/printable"
)

// secretVariable names the environment variable with the job's secret.
const secretVariable = "IFLOWC_RANKS_SECRET"

// A handshake is a message before the job begins. A rank says hello, rank 0 answers with a
// proof that it knows the job's secret, the rank proves the same, and with the last message
// rank 0 says that all ranks are there, or why there is no job. Without a secret the proofs
// prove nothing.
type handshake struct {
	Protocol string `json:"iflowc"`
	Rank     int    `json:"rank"`
	Ranks    int    `json:"ranks,omitempty"`
	Program  string `json:"program,omitempty"` // hash of the program
	Job      string `json:"job,omitempty"`     // Launch.Job
	Nonce    string `json:"nonce,omitempty"`   // random, so that no proof counts twice
	Proof    string `json:"proof,omitempty"`   // see prove
	Error    string `json:"error,omitempty"`   // why Rank cannot take part; it ends the job
}

// Every protocol starts with protocols, so that a rank of another version is not taken
// for a stranger.
const (
	protocols = "ranks "
	protocol  = protocols + "3"
)

// Limits of a handshake.
const (
	maxHandshake     = 4096             // bytes
	maxReason        = 600              // bytes of Error: JSON may need six for one
	handshakeTimeout = 10 * time.Second // between connecting and the proof
)

// reason returns a text for Error: it came through a port, and must fit.
func reason(text string) string {
	text = printable.Text(strings.Join(strings.Fields(text), " "))
	for len(text) > maxReason {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}

// fault returns the error that a handshake reports, or nil.
func (h *handshake) fault() error {
	if h.Error == "" {
		return nil
	}
	return &RankError{Rank: h.Rank, Err: errors.New(h.Error)}
}

// Who made a proof, so that none can be sent back as one's own.
const (
	byLeader = "rank 0"
	byWorker = "rank"
)

// prove returns the proof of who, rank 0 or another, that it knows the secret: of the hello,
// with that rank's nonce, and of rank 0's nonce.
func prove(secret, who string, hello []byte, nonce string) string {
	m := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(m, "%s %s %d %q %s", protocol, who, len(hello), nonce, hello)
	return hex.EncodeToString(m.Sum(nil))
}

// proves reports whether the handshake has such a proof.
func (h *handshake) proves(secret, who string, hello []byte, nonce string) bool {
	return hmac.Equal([]byte(h.Proof), []byte(prove(secret, who, hello, nonce)))
}

func newNonce() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// writeHandshake sends a handshake and returns its bytes.
func writeHandshake(conn net.Conn, h handshake) ([]byte, error) {
	data, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	_, err = conn.Write(slices.Concat(head(tagHandshake, len(data)), data))
	return data, err
}

// readHandshake receives a handshake and returns its bytes.
func readHandshake(conn net.Conn, h *handshake) ([]byte, error) {
	tag, data, err := readFrame(conn, maxHandshake)
	if err == nil && tag != tagHandshake {
		err = errors.New("no handshake")
	}
	if err == nil {
		err = json.Unmarshal(data, h)
	}
	h.Error = reason(h.Error)
	return data, err
}

// An arrival is a connection of a rank that knows the secret. Without a secret, it may also
// be of a rank of another version, which cannot prove anything.
type arrival struct {
	conn  net.Conn
	hello handshake
}

// maxGreetings is the number of connections that may be without a complete handshake. With
// one more, the oldest is closed: a rank needs milliseconds, and dials again.
const maxGreetings = 256

// A reception takes the connections at rank 0's port, so that strangers neither take part
// nor keep the ranks from it.
type reception struct {
	own      handshake
	secret   string
	arrivals chan<- arrival
	state    *wait

	mu       sync.Mutex
	greeting []net.Conn // oldest first
}

// open takes connections until the listener is closed.
func (r *reception) open(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			r.enter(conn)
			go r.greet(ctx, conn) // concurrently, so that a silent client does not block the others
		case errors.Is(err, net.ErrClosed):
			return
		default: // too many open files, or a connection that has ended already
			r.closeOldest(1)
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (r *reception) enter(conn net.Conn) {
	r.mu.Lock()
	r.greeting = append(r.greeting, conn)
	more := len(r.greeting) - maxGreetings
	r.mu.Unlock()
	r.closeOldest(more)
}

// closeOldest closes the n oldest connections that are being greeted.
func (r *reception) closeOldest(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range min(n, len(r.greeting)) {
		r.greeting[0].Close()
		r.greeting = r.greeting[1:]
	}
}

// refuse tells a rank why it cannot take part in a job that goes on without it.
func (r *reception) refuse(conn net.Conn, hello handshake, why string) {
	r.state.note("refused %s as rank %d: %s", conn.RemoteAddr(), hello.Rank, why)
	tell(conn, handshake{Protocol: protocol, Rank: hello.Rank, Error: reason(why)})
}

// greet shakes hands with a new connection.
func (r *reception) greet(ctx context.Context, conn net.Conn) {
	g, ok := r.shakeHands(conn)
	r.mu.Lock()
	r.greeting = slices.DeleteFunc(r.greeting, func(c net.Conn) bool { return c == conn })
	r.mu.Unlock()
	if !ok {
		conn.Close()
		return
	}
	select {
	case r.arrivals <- g:
	case <-ctx.Done():
		conn.Close()
	}
}

// shakeHands returns false if the connection is not of a rank of this job.
func (r *reception) shakeHands(conn net.Conn) (g arrival, ok bool) {
	g.conn = conn
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	hello, err := readHandshake(conn, &g.hello)
	if err != nil || !strings.HasPrefix(g.hello.Protocol, protocols) {
		return g, false // not a rank
	}
	if job := g.hello.Job; job != "" && r.own.Job != "" && job != r.own.Job {
		r.refuse(conn, g.hello, fmt.Sprintf("it belongs to the job %.40q, rank 0 to %.40q; give each job a MASTER_PORT of its own", job, r.own.Job))
		return g, false
	}
	if g.hello.Protocol != r.own.Protocol && r.secret != "" {
		r.refuse(conn, g.hello, "it was compiled by another version of iflowc; start the same program on all ranks")
		return g, false
	}
	answer := handshake{Protocol: protocol, Nonce: newNonce()}
	answer.Proof = prove(r.secret, byLeader, hello, answer.Nonce)
	if _, err := writeHandshake(conn, answer); err != nil {
		return g, false
	}
	if g.hello.Protocol == r.own.Protocol {
		var proof handshake
		if _, err := readHandshake(conn, &proof); err != nil || !proof.proves(r.secret, byWorker, hello, answer.Nonce) {
			r.refuse(conn, g.hello, "it has another "+secretVariable+" than rank 0; set the same on all ranks")
			return g, false
		}
	}
	conn.SetDeadline(time.Time{})
	return g, true
}
