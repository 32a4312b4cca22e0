package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// authorized sends the token to the hub's own scheme, host and port only. The standard
// library would also send it to another port of the same host, and without TLS.
type authorized struct {
	http.RoundTripper
	c *Client
}

// RoundTrip sends a request.
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	hub, err := url.Parse(a.c.Endpoint)
	if err == nil && a.c.Token != "" && origin(r.URL) == origin(hub) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.c.Token)
	}
	return a.RoundTripper.RoundTrip(r)
}

// origin returns the scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// errRedirect means that redirects lead nowhere. Trying again does not help.
var errRedirect = errors.New("the hub's redirects lead nowhere")

// checkRedirect ends redirects that are circles, too many, or not to HTTP.
func checkRedirect(next *http.Request, earlier []*http.Request) error {
	if next.URL.Scheme != "http" && next.URL.Scheme != "https" {
		return fmt.Errorf("%w: to the scheme %.20q", errRedirect, next.URL.Scheme)
	}
	for _, r := range earlier {
		if r.URL.String() == next.URL.String() {
			return fmt.Errorf("%w: they go in a circle", errRedirect)
		}
	}
	if len(earlier) >= 10 {
		return fmt.Errorf("%w: more than 10", errRedirect)
	}
	return nil
}

// longestPause is the longest time without a byte of a body, that of the hub's Python
// client (HF_HUB_DOWNLOAD_TIMEOUT).
const longestPause = 10 * time.Second

// errStalled means that no byte of a body came for a while.
var errStalled = errors.New("no data came")

// A steadyBody is a body whose reads fail with errStalled after a pause.
type steadyBody struct {
	io.ReadCloser
	ctx    context.Context // that of the request
	cancel context.CancelCauseFunc
	pause  time.Duration
}

// Read reads what has come.
func (b *steadyBody) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.pause, func() { b.cancel(fmt.Errorf("%w for %v", errStalled, b.pause)) })
	defer timer.Stop()
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close ends the request.
func (b *steadyBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}
