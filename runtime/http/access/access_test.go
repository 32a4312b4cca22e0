package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// A clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func control(t *testing.T, opt Options) (*Control, *clock) {
	t.Helper()
	at := &clock{time.Unix(1e9, 0)}
	opt.Now = at.now
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return c, at
}

func from(peer string, headers ...string) *http.Request {
	r := httptest.NewRequest("POST", "/v1/completions", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func identify(t *testing.T, c *Control, r *http.Request) *Caller {
	t.Helper()
	who, err := c.Identify(r)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// TestLimits checks that quotas refill evenly and that a refusal has the time to wait.
func TestLimits(t *testing.T) {
	t.Parallel()
	keys := []Key{{Name: "a", Hashes: [][32]byte{sha256.Sum256([]byte("A"))}, Limits: Limits{Requests: 2, Tokens: 60, Concurrency: 1}}}
	registry := &metrics.Registry{}
	c, at := control(t, Options{Load: func() ([]Key, error) { return keys, nil }, Registry: registry})
	ask := func() (*Caller, *Refusal) {
		who := identify(t, c, from("1.2.3.4:5", "Authorization", "bearer A"))
		return who, who.Begin()
	}
	first, r := ask()
	if r != nil {
		t.Fatal(r)
	}
	if _, r := ask(); r == nil || r.Limit != "concurrency" {
		t.Errorf("two at once: %+v", r)
	}
	first.Charger()(90)
	first.End()
	if _, r := ask(); r == nil || r.Limit != "tokens" || r.Wait != 30*time.Second {
		t.Errorf("30 tokens too many: %+v", r)
	}
	if requests, tokens := first.Quotas(); requests != (Quota{2, 1, 30 * time.Second}) || tokens != (Quota{60, 0, 90 * time.Second}) {
		t.Errorf("%+v %+v", requests, tokens)
	}
	at.at = at.at.Add(30 * time.Second)
	for range 2 {
		who, r := ask()
		if r != nil {
			t.Fatal(r)
		}
		who.End()
		who.End() // a second End has no effect
	}
	if _, r := ask(); r == nil || r.Limit != "requests" || r.Wait != 30*time.Second {
		t.Errorf("a third request: %+v", r)
	}
	var text strings.Builder
	registry.WriteTo(&text)
	for _, want := range []string{`iflowc_key_requests_total{key="a"} 3`, `iflowc_key_tokens_total{key="a"} 90`, `iflowc_key_refused_total{key="a"} 3`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("metrics lack %s:\n%s", want, text.String())
		}
	}
}

// TestReload checks that keys are added and removed, that running requests and used
// quotas are kept, and that an invalid file changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("- {name: a, key: old, requests_per_minute: 1, max_priority: -3, operator: true}\n- {name: b, key: gone}\n")
	c, _ := control(t, Options{Load: func() ([]Key, error) { keys, _, err := ReadFile(path); return keys, err }})
	who := identify(t, c, from("1.2.3.4:5", "X-Api-Key", "old"))
	if r := who.Begin(); r != nil || who.MaxPriority != -3 || !who.Operator {
		t.Fatal(r, who.MaxPriority)
	}
	write("- {name: a, key: [old, new], requests_per_minute: 1}\n")
	if change, err := c.Reload(); err != nil || change != (Change{Keys: 2, Added: 1, Removed: 1}) {
		t.Fatal(change, err)
	}
	again := identify(t, c, from("1.2.3.4:5", "X-Api-Key", "new"))
	if r := again.Begin(); r == nil || r.Limit != "requests" || again.Operator {
		t.Errorf("the limit was forgotten, or the right was kept: %+v, %+v", r, again)
	}
	if _, err := c.Identify(from("1.2.3.4:5", "X-Api-Key", "gone")); !errors.Is(err, ErrKey) {
		t.Errorf("a key that was taken out: %v", err)
	}
	write("- {name: a, key: [old, new], requests_per_hour: 1}\n")
	if _, err := c.Reload(); err == nil || !strings.Contains(err.Error(), "keys.yaml:1: unknown key \"requests_per_hour\" (did you mean \"requests_per_minute\"?)") {
		t.Errorf("a wrong file: %v", err)
	}
	identify(t, c, from("1.2.3.4:5", "X-Api-Key", "new"))
	who.End()
	if g := c.groups["a"]; g.running != 0 {
		t.Errorf("%d running", g.running)
	}
}

// TestAddress checks that forwarding headers are used only from trusted proxies.
func TestAddress(t *testing.T) {
	t.Parallel()
	var proxies []netip.Prefix
	for _, text := range []string{"10.0.0.0/8", "::1"} {
		p, err := ParseProxy(text)
		if err != nil {
			t.Fatal(err)
		}
		proxies = append(proxies, p)
	}
	c, _ := control(t, Options{Proxies: proxies})
	const xff, fwd = "X-Forwarded-For", "Forwarded"
	for _, test := range []struct {
		r    *http.Request
		want string
	}{
		{from("8.8.8.8:1", xff, "1.1.1.1"), "8.8.8.8"},
		{from("10.1.1.1:1"), "10.1.1.1"},
		{from("10.1.1.1:1", xff, "6.6.6.6, 1.1.1.1, 10.2.2.2"), "1.1.1.1"},
		{from("10.1.1.1:1", xff, "6.6.6.6", xff, "1.1.1.1:77"), "1.1.1.1"},
		{from("10.1.1.1:1", xff, "1.1.1.1, nonsense, 10.2.2.2"), "10.2.2.2"},
		{from("10.1.1.1:1", xff, "10.3.3.3, 10.2.2.2"), "10.3.3.3"},
		{from("[::1]:1", fwd, `for=6.6.6.6, For="[2001:db8::7]:80";proto=https`), "2001:db8::7"},
		{from("[::1]:1", fwd, `for=6.6.6.6, by=1.1.1.1`), "::1"},
		{from("[::ffff:10.1.1.1]:1", xff, "::ffff:1.1.1.1"), "1.1.1.1"},
		{from("@"), "invalid IP"},
	} {
		if got := c.Address(test.r).String(); got != test.want {
			t.Errorf("%s %v: %s, want %s", test.r.RemoteAddr, test.r.Header, got, test.want)
		}
	}
	for r, want := range map[*http.Request]string{from("10.1.1.1:1", xff, "1.1.1.1"): "1.1.1.1", from("10.1.1.1:1"): "10.1.1.1:1", from("8.8.8.8:1", xff, "1.1.1.1"): "8.8.8.8:1", from("@"): "@"} {
		if got := c.Client(r); got != want {
			t.Errorf("%s %v: %s in the log, want %s", r.RemoteAddr, r.Header, got, want)
		}
	}
	if a, b := PeerGroup("[2001:db8::1]:5"), PeerGroup("[2001:db8:0:0:ffff::1]:6"); a != b {
		t.Errorf("%s and %s are of one network", a, b)
	}
}

// TestAddresses checks that limits apply per address and that idle addresses are
// evicted.
func TestAddresses(t *testing.T) {
	t.Parallel()
	c, _ := control(t, Options{Limits: Limits{Requests: 1}})
	c.addresses.max = 10
	first := identify(t, c, from("9.9.9.9:1"))
	if r := first.Begin(); r != nil {
		t.Fatal(r)
	}
	for i := range 100 {
		who := identify(t, c, from(fmt.Sprintf("1.1.1.%d:1", i)))
		if r := who.Begin(); r != nil {
			t.Fatal(r)
		}
		who.End()
	}
	if n := len(c.addresses.groups); n != 10 {
		t.Errorf("%d addresses are kept", n)
	}
	again := identify(t, c, from("9.9.9.9:2"))
	if r := again.Begin(); r == nil || r.Limit != "requests" {
		t.Errorf("an address that is at work was forgotten: %+v", r)
	}
	again.End()
	again.End() // a second End has no effect
	first.End()
	if n := c.addresses.idle.Len(); n != 10 {
		t.Errorf("%d addresses are idle", n)
	}
}
