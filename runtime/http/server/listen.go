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
	"sync"
	"time"
)

// A Listening says where and how a service listens.
type Listening struct {
	Address  string // host:port
	Cert     string // files of a TLS certificate and its key; "": no TLS
	Key      string
	Requests time.Duration // most time for a client to send its request; 0: 30 s
	Idle     time.Duration // how long a connection may rest; 0: 2 minutes
	Grace    time.Duration // how long work may go on after the end was asked for; 0: 30 s
	Most     int           // most connections; 0: 4096
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
}

// Listen opens the address. It comes before the model is loaded, so that a
// wrong one is told at once.
func (l *Listening) Listen(ctx context.Context) (net.Listener, error) {
	l.fill()
	var c net.ListenConfig
	listener, err := c.Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	return limit(listener, l.Most), nil
}

// Run serves until ctx ends; then it refuses new work, finishes what runs, and
// reports what it had to cut off when Grace is over.
func (s *Server) Run(ctx context.Context, listener net.Listener, l Listening) error {
	l.fill()
	s.local = loopback(listener.Addr())
	h := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: min(l.Requests, 10*time.Second), ReadTimeout: l.Requests, IdleTimeout: l.Idle,
		WriteTimeout: s.cfg.Timeout + l.Requests, MaxHeaderBytes: 32 << 10, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
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
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Grace)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		s.cfg.Scheduler.Drain(end)
		close(drained)
	}()
	err := h.Shutdown(end)
	<-drained
	if errors.Is(err, context.DeadlineExceeded) {
		waiting, running = s.cfg.Scheduler.Load()
		s.cfg.Log.Warn("cut off", "running", running, "waiting", waiting)
		s.cfg.Scheduler.Close() // clients get an error rather than a broken connection
		return h.Close()
	}
	return err
}

// limit lets only so many connections be open at once; others wait in the
// kernel's queue.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &counted{Conn: c, slots: l.slots}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A counted connection gives its slot back once.
type counted struct {
	net.Conn
	once  sync.Once
	slots chan struct{}
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.slots })
	return err
}
