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

// A Listening says where and how a service listens.
type Listening struct {
	Address  string // host:port
	Cert     string // files of a TLS certificate and its key; "": no TLS
	Key      string
	Requests time.Duration // most time for a client to send its request; 0: 30 s
	Idle     time.Duration // how long a connection may rest; 0: 2 minutes
	Grace    time.Duration // how long work may go on after the end was asked for; 0: 30 s
	Most     int           // most connections; 0: 4096. Fewer where the system allows fewer open files
}

func (l *Listening) fill() {
	for _, d := range []struct {
		v       *time.Duration
		usually time.Duration
	}{{&l.Requests, 30 * time.Second}, {&l.Idle, 2 * time.Minute}, {&l.Grace, 30 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.usually
		}
	}
	if l.Most == 0 {
		l.Most = 4096
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(l.Most+otherFiles) {
		l.Most = max(1, int(files.Cur)-otherFiles)
	}
}

// otherFiles is how many files a service has open besides its connections, with
// room to spare.
const otherFiles = 64

// Listen opens the address. It comes before the model is loaded, so that a
// wrong one is told at once.
func (l *Listening) Listen(ctx context.Context) (net.Listener, error) {
	l.fill()
	var c net.ListenConfig
	listener, err := c.Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	return newGate(listener, l.Most), nil
}

// mostHeader is how long a client may take to send a request's header, or to
// agree on a key with TLS.
const mostHeader = 5 * time.Second

// http is the HTTP server. What a connection may make it hold is bounded, so
// that thousands of idle ones cost little.
func (s *Server) http(l *Listening) *http.Server {
	const streams, window = 64, 256 << 10 // of an HTTP/2 connection
	return &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: min(l.Requests, mostHeader), ReadTimeout: l.Requests, IdleTimeout: l.Idle,
		WriteTimeout: s.cfg.Timeout + l.Requests, MaxHeaderBytes: 32 << 10, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ConnContext: withConnection,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window},
	}
}

// Run serves until ctx ends. Then it answers new requests with status 503, so
// that clients go elsewhere, until what runs has ended or Grace is over; what
// it has to cut off then it reports.
func (s *Server) Run(ctx context.Context, listener net.Listener, l Listening) error {
	l.fill()
	s.local = loopback(listener.Addr())
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
		s.cfg.Scheduler.Close() // clients get an error rather than a broken connection
	}
	deadline, _ := end.Deadline()
	return s.closeConnections(h, listener, max(lastWrite, time.Until(deadline)))
}

// The times for the last bytes of answers when the service ends: connections
// without a request are closed after the first, all others after the second at
// the earliest.
const lastIdle, lastWrite = 500 * time.Millisecond, 2 * time.Second

// closeConnections ends the HTTP server when no request computes any more.
// Clients have some time to receive the rest of their answers.
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
