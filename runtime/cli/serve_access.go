//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// accessFlags control who may use a server, and how much.
type accessFlags struct {
	Keys          string   `placeholder:"FILE" type:"path" help:"YAML file with API keys, names and limits; it is reloaded when it changes, and by SIGHUP."`
	APIKey        []string `name:"api-key" env:"IFLOWC_API_KEY" placeholder:"KEY" help:"API keys that clients must send one of."`
	KeyFile       string   `name:"api-key-file" placeholder:"FILE" type:"path" help:"File with one API key per line; it is reloaded when it changes, and by SIGHUP."`
	Requests      int      `name:"requests-per-minute" placeholder:"N" help:"Requests per minute and client, unless --keys limits it (default: no limit)."`
	Tokens        int      `name:"tokens-per-minute" placeholder:"N" help:"Tokens per minute and client, unless --keys limits it (default: no limit)."`
	Concurrency   int      `name:"max-concurrency" placeholder:"N" help:"Concurrent requests per client, unless --keys limits it (default: no limit)."`
	Proxies       []string `name:"trusted-proxy" placeholder:"CIDR" help:"Trusted proxies: X-Forwarded-For and Forwarded name the client's address."`
	Hosts         []string `name:"allowed-host" placeholder:"NAME" help:"Accepted Host headers, besides localhost."`
	CORS          []string `name:"cors" placeholder:"ORIGIN" help:"Allowed CORS origins; * allows all."`
	SharePrefixes bool     `name:"share-prefix-cache" help:"Share the caches of prefixes and grammars among all clients; faster, but response times reveal other clients' prompts and schemas."`
}

// control returns the access control for the flags.
func (f *accessFlags) control(registry *metrics.Registry, log *slog.Logger) (*access.Control, error) {
	opt := access.Options{Limits: access.Limits{Requests: f.Requests, Tokens: f.Tokens, Concurrency: f.Concurrency}, Registry: registry}
	for _, l := range []struct {
		name string
		n    int
	}{{"requests-per-minute", f.Requests}, {"tokens-per-minute", f.Tokens}, {"max-concurrency", f.Concurrency}} {
		if l.n < 0 {
			return nil, wrong(fmt.Errorf("--%s %d: expected a number from 0 on; 0 is no limit", l.name, l.n))
		}
	}
	for _, text := range f.Proxies {
		p, err := access.ParseProxy(text)
		if err != nil {
			return nil, wrong(fmt.Errorf("--trusted-proxy %s: expected an address or a range such as 10.0.0.0/8", text))
		}
		opt.Proxies = append(opt.Proxies, p)
	}
	for _, h := range f.Hosts {
		if _, err := netip.ParseAddrPort(h); h == "" || err == nil || strings.ContainsAny(h, "/ *") {
			return nil, wrong(fmt.Errorf("--allowed-host %q: expected a host name such as chat.example.org", h))
		}
	}
	switch plain := len(f.APIKey) > 0 || f.KeyFile != ""; {
	case f.Keys != "" && plain:
		return nil, wrong(errors.New("--keys and --api-key, --api-key-file or IFLOWC_API_KEY exclude each other: put all keys into the file of --keys"))
	case f.Keys != "":
		opt.Load = func() ([]access.Key, error) {
			keys, warning, err := access.ReadFile(f.Keys)
			warn(log, warning)
			return keys, err
		}
	case plain:
		opt.Load = func() ([]access.Key, error) { return f.plain(log) }
	}
	c, err := access.New(opt)
	return c, wrong(err)
}

// plain are the keys without names or limits.
func (f *accessFlags) plain(log *slog.Logger) ([]access.Key, error) {
	keys := append([]string(nil), f.APIKey...)
	if f.KeyFile != "" {
		text, warning, err := access.ReadText(f.KeyFile)
		if err != nil {
			return nil, err
		}
		warn(log, warning)
		keys = append(keys, strings.Fields(string(text))...)
		if len(keys) == 0 {
			return nil, fmt.Errorf("%s holds no key", f.KeyFile)
		}
	}
	return access.Plain(keys)
}

func warn(log *slog.Logger, text string) {
	if text != "" {
		log.Warn(text)
	}
}

// reloading reads the keys again on each SIGHUP and when their file changes, until
// stop is called. A service without keys ends on SIGHUP, as programs do.
func (f *accessFlags) reloading(c *access.Control, log *slog.Logger) (stop func()) {
	if c.Open() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go c.Watch(ctx, signals, cmp.Or(f.Keys, f.KeyFile), func(change access.Change, err error) {
		if err != nil {
			log.Error("keys were not reloaded; the old ones stay valid", "error", err.Error())
		} else {
			log.Info("keys were reloaded", "keys", change.Keys, "added", change.Added, "removed", change.Removed)
		}
	})
	return func() {
		signal.Stop(signals)
		cancel()
	}
}
