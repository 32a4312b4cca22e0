//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

const shortAnswer = `{"prompt":"Once","max_tokens":2}`

// checkKeyed checks a proxy in front of a service with keys.
func checkKeyed(r *results, c *client, service *process) {
	path := "/v1/completions"
	r.add(c.name+": keys pass", cmp.Or(
		c.expect(401, `"invalid_api_key"`, request{path: path, body: shortAnswer}),
		c.expect(200, `"choices"`, request{path: path, body: shortAnswer, key: webKey})))
	r.add(c.name+": the service knows the client's address, and no header forges it", checkAddress(c, service))
	body := func(size int) request {
		return request{path: path, key: webKey, body: shortAnswer[:1] + strings.Repeat(" ", size-len(shortAnswer)) + shortAnswer[1:]}
	}
	const limit = 4 << 20 // --max-body
	r.add(c.name+": a body of --max-body passes, and a larger one gets 413", cmp.Or(
		c.expect(200, `"choices"`, body(limit)),
		c.expect(413, `"error"`, body(limit+1)),
		c.expect(413, "", body(2*limit))))
	var errs []error
	for _, p := range []string{"/metrics", "/metrics/", "//metrics", "/%6detrics", "/./metrics", "/health/../metrics", "/metrics?a=b", "/%2e/metrics"} {
		errs = append(errs, c.expect(404, "", request{method: "GET", path: p, key: metricsKey}))
	}
	r.add(c.name+": /metrics is refused", cmp.Or(append(errs, c.expect(200, "", request{method: "GET", path: "/health"}))...))
}

// checkAddress checks the client's address in the log.
func checkAddress(c *client, service *process) error {
	resp, body, err := c.ask(request{path: "/v1/completions", body: shortAnswer, key: webKey,
		headers: []string{"X-Forwarded-For", "192.0.2.1", "Forwarded", "for=192.0.2.1", "X-Real-Ip", "192.0.2.1"}})
	if err != nil || resp.StatusCode != 200 {
		return fmt.Errorf("%v, %s", err, body)
	}
	text, err := os.ReadFile(service.log)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		var entry struct{ Request, Client string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Request == resp.Header.Get("X-Request-Id") && entry.Client == clientAddress {
			return nil
		}
	}
	return fmt.Errorf("the log has no request %s of %s", resp.Header.Get("X-Request-Id"), clientAddress)
}

// checkOpen checks a proxy in front of a relay to a service without keys.
func checkOpen(r *results, c *client, relay *relay) {
	r.add(c.name+": the service gets the Host of the client, as pages of the browser send it", c.expect(200, `"choices"`,
		request{path: "/v1/completions", body: shortAnswer, host: proxyHost + ":" + c.port, headers: []string{"Origin", "https://" + proxyHost + ":" + c.port}}))
	_, body, err := c.ask(request{path: "/v1/completions", body: shortAnswer, host: "other.example"})
	if err == nil && strings.Contains(body, `"choices"`) {
		err = fmt.Errorf("answered: %.200s", body)
	}
	r.add(c.name+": another Host is refused", err)
	for _, q := range []request{
		{path: "/v1/completions", body: `{"prompt":"Once upon a time","max_tokens":20,"ignore_eos":true,"stream":true}`},
		{path: "/api/chat", body: `{"model":"demo","messages":[{"role":"user","content":"Tell a story."}],"options":{"num_predict":20}}`},
	} {
		r.add(c.name+": "+q.path+" streams token by token", checkStream(c, relay, q))
	}
	r.add(c.name+": a client that leaves ends its request", checkLeaving(c, relay))
	r.add(c.name+": an answer may take long", c.expect(200, "{}", request{method: "GET", path: silentPath}))
}

// checkStream checks that each event arrives before the next one is sent.
func checkStream(c *client, relay *relay, q request) error {
	resp, err := c.send(context.Background(), q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	end := eventEnd(resp)
	if resp.StatusCode != 200 || end == "" {
		return fmt.Errorf("status %d, %v", resp.StatusCode, resp.Header)
	}
	events := 0
	err = each(resp.Body, end, func([]byte) bool {
		events++
		return relay.seen()
	})
	if ended := <-relay.ended; ended != nil {
		return ended
	}
	if err == nil && events < 5 {
		err = fmt.Errorf("only %d events", events)
	}
	return err
}

// seen tells the relay that an event arrived; false: its stream has ended.
func (r *relay) seen() bool {
	select {
	case r.arrived <- struct{}{}:
		return true
	case <-time.After(eventTime):
		return false
	}
}

// checkLeaving checks that a request ends when its client leaves.
func checkLeaving(c *client, relay *relay) error {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	resp, err := c.send(ctx, request{path: "/v1/completions", body: `{"prompt":"Once","max_tokens":20,"ignore_eos":true,"stream":true}`})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n := 0
	err = each(resp.Body, eventEnd(resp), func([]byte) bool {
		if n++; n == 3 {
			leave()
			return false
		}
		return relay.seen()
	})
	if err != nil {
		return err
	}
	if ended := <-relay.ended; ended != errLeft {
		return fmt.Errorf("the request did not end: %v", ended)
	}
	return nil
}
