//go:build unix

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
)

// A Listening configures the listener of a service.
type Listening struct {
	Address     string // files of a TLS certificate and its private key; "": no TLS
	Cert        string // files of a TLS certificate and its key; "": no TLS
	Key         string
	Requests    time.Duration // maximum time to receive a request; 0: 30 s
	Idle        time.Duration // idle timeout of connections; 0: 2 minutes
	Grace       time.Duration // time for running requests after a shutdown signal; 0: 30 s
	Connections int           // maximum open connections; 0: 4096. Lowered to what RLIMIT_NOFILE allows
}

func (l *Listening) fill() {
	for _, d := range []struct {
		v         *time.Duration
		byDefault time.Duration
	}{{&l.Requests, 30 * time.Second}, {&l.Idle, 2 * time.Minute}, {&l.Grace, 30 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.byDefault
		}
	}
	if l.Connections == 0 {
		l.Connections = 4096
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(l.Connections+otherFiles) {
		l.Connections = max(1, int(files.Cur)-otherFiles)
	}
}

// otherFiles is the number of open files reserved besides connections.
const otherFiles = 64

// Listen opens the address. It is called before the model is loaded, so that an address
// in use is reported at once.
func (l *Listening) Listen(ctx context.Context) (net.Listener, error) {
	l.fill()
	var c net.ListenConfig
	listener, err := c.Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	return newGate(listener, l.Connections), nil
}

// headerTimeout limits the time for a request's header and for a TLS handshake.
const headerTimeout = 5 * time.Second

// http returns the HTTP server. Its buffers per connection are bounded, so that
// thousands of idle connections cost little.
func (s *Server) http(l *Listening) *http.Server {
	const streams, window, frame = 64, 64 << 10, 16 << 10 // per HTTP/2 connection
	return &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: min(l.Requests, headerTimeout), ReadTimeout: l.Requests, IdleTimeout: l.Idle,
		WriteTimeout: s.cfg.Timeout + l.Requests, MaxHeaderBytes: 32 << 10, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ConnContext: withConnection,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window, MaxReadFrameSize: frame,
			WriteByteTimeout: l.Requests}, // without it, a client that does not read keeps the answers to its pings here
	}
}

// Run serves until ctx is done. Then it answers new requests with status 503 until
// running requests have ended or Grace is over, and logs the number of requests that it
// cuts off.
func (s *Server) Run(ctx context.Context, listener net.Listener, l Listening) error {
	l.fill()
	s.local = onLoopback(listener.Addr())
	h := s.http(&l)
	failed := make(chan error, 1)
	go func() {
		if l.Cert != "" {
			failed <- h.ServeTLS(listener, l.Cert, l.Key)
		} else {
			failed <- h.Serve(listener)
		}
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	waiting, running := s.cfg.Scheduler.Load()
	s.cfg.Log.Info("shutting down", "running", running, "waiting", waiting)
	s.ending.Store(true)
	h.SetKeepAlivesEnabled(false)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Grace)
	defer cancel()
	late := s.cfg.Scheduler.Drain(end)
	if late != nil {
		waiting, running = s.cfg.Scheduler.Load()
		s.cfg.Log.Warn("cut off", "running", running, "waiting", waiting)
		s.cfg.Scheduler.Close() // sends clients an error event instead of closing the connection
	}
	deadline, _ := end.Deadline()
	return s.closeConnections(h, listener, max(lastWrite, time.Until(deadline)))
}

// Times for the last bytes of responses at shutdown: connections without a request are
// closed after lastIdle, others not before lastWrite.
const lastIdle, lastWrite = 500 * time.Millisecond, 2 * time.Second

// closeConnections stops the HTTP server after the last request has ended; clients have
// at most the time last to receive their responses.
func (s *Server) closeConnections(h *http.Server, listener net.Listener, last time.Duration) error {
	if g, ok := listener.(*gate); ok {
		defer time.AfterFunc(lastIdle, func() { g.closeSpare(lastIdle / 2) }).Stop()
	}
	end, cancel := context.WithTimeout(context.Background(), last)
	defer cancel()
	if err := h.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return h.Close()
}
