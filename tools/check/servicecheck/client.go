//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/iflowc/iflowc/tools/check/selfsigned"
)

// A client sends requests to a proxy, from clientAddress.
type client struct {
	name string // of the proxy
	port string
	http http.Client
}

const clientAddress = "127.0.0.2"

func newClient(name, addr string, cert selfsigned.Certificate) *client {
	_, port, _ := net.SplitHostPort(addr)
	dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddress)}}
	return &client{name, port, http.Client{Timeout: time.Minute, Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: cert.Pool},
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial.DialContext(ctx, "tcp", addr) },
	}}}
}

// A request is what a client sends; without a body and method it is a GET.
type request struct {
	method, path, host string
	key                string
	headers            []string // names and values
	body               string
}

func (c *client) send(ctx context.Context, q request) (*http.Response, error) {
	if q.method == "" {
		q.method = "POST"
	}
	r, err := http.NewRequestWithContext(ctx, q.method, "https://"+proxyHost+":"+c.port+q.path, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.Host = q.host
	if q.key != "" {
		r.Header.Set("Authorization", "Bearer "+q.key)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(q.headers); i += 2 {
		r.Header.Set(q.headers[i], q.headers[i+1])
	}
	return c.http.Do(r)
}

// ask sends a request and returns the whole response.
func (c *client) ask(q request) (*http.Response, string, error) {
	resp, err := c.send(context.Background(), q)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// expect checks the status of a response, and a part of its body.
func (c *client) expect(status int, part string, q request) error {
	resp, body, err := c.ask(q)
	if err != nil {
		return err
	}
	if resp.StatusCode != status || !strings.Contains(body, part) {
		return fmt.Errorf("%s: status %d, expected %d with %q; %.200s", q.path, resp.StatusCode, status, part, body)
	}
	return nil
}

// each reads a stream's events, each of which ends with the given bytes, until do
// returns false.
func each(body io.Reader, end string, do func(event []byte) bool) error {
	r := bufio.NewReader(body)
	for {
		var event []byte
		for !bytes.HasSuffix(event, []byte(end)) {
			line, err := r.ReadBytes('\n')
			event = append(event, line...)
			if err == io.EOF && len(event) == 0 {
				return nil
			} else if err != nil {
				return err
			}
		}
		if !do(event) {
			return nil
		}
	}
}
