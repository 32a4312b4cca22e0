//go:build linux

package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A relay stands between a proxy and a service. It passes requests and responses on as
// they are, but sends the next event of a stream only when the client has the last one.
type relay struct {
	*http.Server
	addr, service string
	arrived       chan struct{} // the client has an event
	ended         chan error    // how each stream ended
}

const (
	silentPath = "/silent" // answered after silentTime
	silentTime = 2 * time.Second
	eventTime  = 20 * time.Second // after which an event is held back
)

// How a stream ended, except with its last event, which is nil.
var (
	errHeld = errors.New("the proxy holds an event back until the next one comes")
	errLeft = errors.New("the client left")
)

func newRelay(service string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{addr: l.Addr().String(), service: service, arrived: make(chan struct{}), ended: make(chan error, 1)}
	r.Server = &http.Server{Handler: r}
	go r.Serve(l)
	return r, nil
}

func (r *relay) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	if in.URL.Path == silentPath {
		time.Sleep(silentTime)
		io.WriteString(w, "{}")
		return
	}
	out := in.Clone(in.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", r.service, ""
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	switch end := eventEnd(resp); end {
	case "":
		io.Copy(w, resp.Body)
	default:
		r.ended <- r.pass(w, in, resp, end)
	}
}

// eventEnd returns what ends an event of a stream, or "".
func eventEnd(resp *http.Response) string {
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/event-stream"):
		return "\n\n"
	case strings.HasPrefix(kind, "application/x-ndjson"):
		return "\n"
	}
	return ""
}

func (r *relay) pass(w http.ResponseWriter, in *http.Request, resp *http.Response, end string) (ended error) {
	err := each(resp.Body, end, func(event []byte) bool {
		w.Write(event)
		http.NewResponseController(w).Flush()
		select {
		case <-r.arrived:
		case <-in.Context().Done():
			ended = errLeft
		case <-time.After(eventTime):
			ended = errHeld
		}
		return ended == nil
	})
	if ended == nil {
		return err
	}
	return ended
}
