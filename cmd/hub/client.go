package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/printable"
)

// A Client fetches from one hub.
type Client struct {
	Endpoint string // without a slash at the end
	Token    string // "": none
	Cache    string // folder of the cache
	Jobs     int    // concurrent downloads; 0: 4
	Agent    string // User-Agent

	// Progress is called with the bytes fetched and the total, by one goroutine
	// at a time; may be nil.
	Progress func(done, total int64)
	// Notice is called with messages for the user; may be nil.
	Notice func(text string)

	http  *http.Client
	retry time.Duration // first pause before a retry; tests shorten it
	stall time.Duration // the longest time without a byte of a body; tests shorten it
}

const tries = 5

// FromEnvironment returns a client with the settings of the hub's Python
// client: HF_ENDPOINT, HF_TOKEN, HF_HUB_CACHE and HF_HOME.
func FromEnvironment() (*Client, error) {
	endpoint := os.Getenv("HF_ENDPOINT")
	if endpoint == "" {
		endpoint = "https://huggingface.co"
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("HF_ENDPOINT: %q is not a URL; expected one such as https://huggingface.co", endpoint)
	}
	home := os.Getenv("HF_HOME")
	if home == "" {
		base, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("no home folder for the cache (%w); set HF_HOME", err)
		}
		home = filepath.Join(base, ".cache", "huggingface")
	}
	cache := os.Getenv("HF_HUB_CACHE")
	if cache == "" {
		cache = filepath.Join(home, "hub")
	}
	token := os.Getenv("HF_TOKEN")
	if token == "" {
		if data, err := os.ReadFile(filepath.Join(home, "token")); err == nil {
			token = strings.TrimSpace(string(data))
		}
	}
	return &Client{Endpoint: strings.TrimRight(endpoint, "/"), Token: token, Cache: cache}, nil
}

// A statusError is an unsuccessful response.
type statusError struct {
	status int
	text   string // one line
	after  time.Duration
}

func (e *statusError) Error() string { return e.text }

// get requests an address and returns a response with status 200 or 206. It
// retries temporary failures.
func (c *Client) get(ctx context.Context, address string, from int64) (*http.Response, error) {
	if c.http == nil {
		return nil, errors.New("bug: the client was not started")
	}
	pause := c.retry
	for try := 1; ; try++ {
		answer, err := c.ask(ctx, address, from)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		wait, again := c.worthRetrying(err, pause)
		if !again || try == tries {
			return nil, err
		}
		c.notice("%v; trying again in %v", err, wait.Round(time.Millisecond))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause *= 2
	}
}

// worthRetrying reports whether a retry may succeed, and after how long.
func (c *Client) worthRetrying(err error, pause time.Duration) (time.Duration, bool) {
	var s *statusError
	if errors.Is(err, errRedirect) {
		return 0, false
	}
	if !errors.As(err, &s) {
		var lookup *net.DNSError
		if errors.As(err, &lookup) && lookup.IsNotFound {
			return 0, false
		}
		var n net.Error
		return pause, errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF)
	}
	const longest = 2 * time.Minute
	switch {
	case s.status == http.StatusTooManyRequests:
		return max(s.after, pause), s.after <= longest
	case s.status >= 500 && s.status != http.StatusNotImplemented:
		return max(s.after, pause), s.after <= longest
	}
	return 0, false
}

func (c *Client) ask(ctx context.Context, address string, from int64) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	req.Header.Set("User-Agent", c.Agent)
	req.Header.Set("Accept-Encoding", "identity") // otherwise lengths would not count bytes
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	answer, err := c.http.Do(req)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	answer.Body = &steadyBody{answer.Body, ctx, cancel, c.stall}
	if answer.StatusCode == http.StatusOK || from > 0 && answer.StatusCode == http.StatusPartialContent {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, c.refusal(answer, address)
}

// refusal explains a status and what to do about it.
func (c *Client) refusal(answer *http.Response, address string) error {
	e := &statusError{status: answer.StatusCode}
	if n, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && n >= 0 {
		e.after = time.Duration(n) * time.Second
	}
	var help string
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		help = "the model does not exist, or needs a token: set HF_TOKEN"
		if c.Token != "" {
			help = "the model does not exist, or the token is not valid: look at HF_TOKEN"
		}
	case http.StatusForbidden:
		help = "the token may not read it; accept the model's conditions on its page first"
	case http.StatusNotFound:
		help = "there is no such model, revision or file; the name is written OWNER/NAME, capitals count"
	case http.StatusTooManyRequests:
		help = "too many requests"
	case http.StatusRequestedRangeNotSatisfiable:
		help = "the rest of the file cannot be had"
	default:
		help = strings.ToLower(http.StatusText(answer.StatusCode))
	}
	if said := serverWords(answer); said != "" {
		help += " (the server says: " + said + ")"
	}
	e.text = fmt.Sprintf("%s: status %d: %s", address, answer.StatusCode, help)
	return e
}

// serverWords returns the error message of a response, as one short line.
func serverWords(answer *http.Response) string {
	said := answer.Header.Get("X-Error-Message")
	if said == "" {
		var body struct {
			Error string `json:"error"`
		}
		data, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
		if err != nil || json.Unmarshal(data, &body) != nil {
			return ""
		}
		said = body.Error
	}
	said = printable.Text(strings.Join(strings.Fields(said), " "))
	if len(said) > 200 {
		said = strings.ToValidUTF8(said[:200], "") + "…"
	}
	return said
}

func (c *Client) notice(format string, args ...any) {
	if c.Notice != nil {
		c.Notice(fmt.Sprintf(format, args...))
	}
}

// start makes the HTTP client. Connecting, headers and pauses of bodies have timeouts.
func (c *Client) start() {
	if c.http != nil {
		return
	}
	c.retry, c.stall = cmp.Or(c.retry, time.Second), cmp.Or(c.stall, longestPause)
	if c.Jobs <= 0 {
		c.Jobs = 4
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 20 * time.Second}).DialContext,
		TLSHandshakeTimeout:   20 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second,
		MaxIdleConnsPerHost:   c.Jobs,
		ForceAttemptHTTP2:     true,
	}
	c.http = &http.Client{Transport: authorized{transport, c}, CheckRedirect: checkRedirect}
}
