//go:build linux

package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// anyCertificate is the configuration of clients that trust the service.
func anyCertificate() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// askClient sends the tool's own requests.
var askClient = &http.Client{Transport: &http.Transport{TLSClientConfig: anyCertificate()}}

func (s *service) url() string {
	if s.tls {
		return "https://" + s.addr
	}
	return "http://" + s.addr
}

// secure shakes hands over a connection; protocol is "h2" or "http/1.1". It returns nil after
// an error.
func (w *worker) secure(c net.Conn, protocol string) *tls.Conn {
	cfg := anyCertificate()
	cfg.NextProtos = []string{protocol}
	t := tls.Client(c, cfg)
	t.SetDeadline(time.Now().Add(20 * time.Second))
	if err := t.HandshakeContext(w.ctx); err != nil || t.ConnectionState().NegotiatedProtocol != protocol {
		w.note(0, []byte("no TLS"))
		c.Close()
		return nil
	}
	t.SetDeadline(time.Time{})
	if w.ctx.Err() != nil { // the end of the load has set a deadline already
		c.Close()
		return nil
	}
	return t
}

// tlsAttacks are attacks on TLS itself.
func tlsAttacks() []attack {
	return []attack{
		{name: "tls-half-hello", sends: "the beginning of a TLS handshake", workers: 1000, tls: true, like: one, expect: slowly, bare: true, do: func(info) act {
			return hold(same([]byte("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc")))
		}},
		{name: "tls-handshakes", sends: "TLS handshakes and no request", workers: 32, pause: refused, tls: true, like: few, expect: slowly, bare: true, do: func(info) act {
			return func(w *worker) {
				if c := w.dial(); c != nil {
					defer c.Close()
					w.secure(c, "h2")
				}
			}
		}},
		{name: "tls-garbage", sends: "bytes that are no TLS", workers: 64, pause: refused, tls: true, like: few, expect: slowly, bare: true, do: func(info) act {
			return ask(same([]byte(fill("\x16\x03\x01\x00\x01\x99", 4096))))
		}},
	}
}
