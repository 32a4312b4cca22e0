//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/embedder"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/page"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
	"github.com/iflowc/iflowc/runtime/kit/sdnotify"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/grammar"
)

type serveCmd struct {
	engineFlags  `embed:""`
	servingFlags `embed:""`

	speculateFlags `embed:""`

	accessFlags `embed:""`

	loraFlags `embed:""`

	Host        string   `default:"127.0.0.1" placeholder:"127.0.0.1" help:"Address to listen on; 0.0.0.0 accepts other machines."`
	Port        *int     `placeholder:"8080" help:"Port; 0 picks a free one (default: the model spec's, else 8080)."`
	Name        string   `placeholder:"NAME" help:"Model name in responses (default: the first --alias, else the model's)."`
	Alias       []string `placeholder:"NAME" help:"More names by which requests may name the model."`
	TLSCert     string   `name:"tls-cert" placeholder:"FILE" type:"path" help:"TLS certificate, for HTTPS."`
	TLSKey      string   `name:"tls-key" placeholder:"FILE" type:"path" help:"Private key of the TLS certificate."`
	Most        int      `name:"max-connections" default:"4096" placeholder:"4096" help:"Maximum open connections; at the limit, idle ones of the busiest address are closed."`
	memoryFlags `embed:""`

	Keep    time.Duration `name:"response-time" default:"1h" placeholder:"1h" help:"Time that responses are stored."`
	Queue   int           `default:"128" placeholder:"128" help:"Maximum queued requests; more get status 429."`
	Wait    time.Duration `name:"queue-time" default:"1m" placeholder:"1m" help:"Maximum queueing time of a request; later ones get status 503."`
	Timeout time.Duration `default:"10m" placeholder:"10m" help:"Maximum time per request."`
	Grace   time.Duration `default:"30s" placeholder:"30s" help:"Time for running requests to complete at shutdown."`
	Prompts bool          `name:"log-prompts" help:"Log prompt texts."`
	Metrics string        `name:"metrics-names" enum:"iflowc,vllm" default:"iflowc" help:"Names of metrics: ${enum}; vllm adds vLLM's names to iflowc's."`
	Log     string        `enum:"text,json,none" default:"text" help:"Log format on standard error: ${enum}."`
}

// Run serves the model over HTTP until ctx ends.
func (c *serveCmd) Run(ctx context.Context, m *model) error {
	registry, log := &metrics.Registry{}, c.logger(m)
	control, err := c.control(registry, log)
	if err != nil {
		return err
	}
	defer c.reloading(control, log)()
	defaults, err := c.defaults(m)
	if err != nil {
		return wrong(err)
	}
	l, listener, err := c.listen(ctx, m)
	if err != nil {
		return wrong(err)
	}
	defer listener.Close()
	drafts, err := c.drafting(ctx, m)
	if err != nil {
		return err
	}
	defer drafts.close()
	if err := c.adapters(m); err != nil {
		return err
	}
	m.prefetch(&c.engineFlags)
	eng, plan, err := c.open(ctx, m, drafts)
	if err != nil {
		return err
	}
	if err := drafts.start(eng); err != nil {
		return err
	}
	opt := eng.Options()
	m.measureRanks(registry)
	eng.UseAdapter(nil) // requests name theirs
	queue := scheduler.Options{Queue: c.Queue, QueueTime: c.Wait, Vocab: m.manifest.Vocab, Metrics: scheduler.NewMetrics(registry), Log: log}
	if m.trace != nil {
		queue.Decided = m.trace.Decision
	}
	s := scheduler.New(eng, queue)
	defer s.Close()
	cfg := server.Config{
		Scheduler: s, Registry: registry, VLLMNames: c.Metrics == "vllm", Manifest: m.manifest, Model: c.name(), Aliases: c.Alias, Context: opt.Context, Sequences: opt.MaxSeqs,
		Adapters: c.loaded(m, s), Defaults: defaults, Access: control, SharePrefixes: c.SharePrefixes, Origins: c.CORS, Hosts: c.Hosts, Body: int64(c.Body), Memory: plan.requests, Responses: plan.responses, KeepTime: c.Keep, Timeout: c.Timeout, LogPrompts: c.Prompts, Log: log, Drafter: drafts.maker,
		Props: map[string]any{"memory": plan.Memory, "pages": opt.Pages, "threads": opt.Threads, "isa": eng.Device().Info().Name},
	}
	if err := c.answers(m, eng, s, &cfg); err != nil {
		return err
	}
	plan.limitHeap()
	l.Connections = plan.connections(m, l.Connections)
	c.announce(m, plan, opt, listener.Addr())
	defer tellSystemd(ctx, log)()
	return m.untilBroken(ctx, func(ctx context.Context) error { return server.New(cfg).Run(ctx, listener, l) })
}

// tellSystemd reports that the service is ready, and later that ctx ends it.
func tellSystemd(ctx context.Context, log *slog.Logger) (stop func() bool) {
	tell := func(state string) {
		if err := sdnotify.Send(state); err != nil {
			log.Warn("systemd was not notified", "state", state, "error", err.Error())
		}
	}
	tell(sdnotify.Ready)
	return context.AfterFunc(ctx, func() { tell(sdnotify.Stopping) })
}

// announce prints what the service uses and where it listens.
func (c *serveCmd) announce(m *model, plan *memoryPlan, opt engine.Options, address net.Addr) {
	for _, line := range engineLines(&m.manifest.Engine) {
		if strings.HasSuffix(line, hostNote) {
			fmt.Fprintf(m.Stderr, "note: %s\n", line)
		}
	}
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	fmt.Fprintf(m.Stderr, "%s\n%s\nlistening at %s://%s (ready after %.2f s)\n", describePlan(plan.Memory, opt), plan, scheme, address, time.Since(m.Start).Seconds())
}

// listen opens the address.
func (c *serveCmd) listen(ctx context.Context, m *model) (l server.Listening, listener net.Listener, err error) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return l, nil, errors.New("--tls-cert and --tls-key go together")
	}
	if err := c.memoryFlags.check(); err != nil {
		return l, nil, err
	}
	if slices.Contains(c.Alias, "") {
		return l, nil, errors.New("--alias: a name is empty; write the names with commas between them")
	}
	if c.Keep <= 0 {
		return l, nil, fmt.Errorf("--response-time %v: expected more than 0; to store nothing, requests set \"store\": false", c.Keep)
	}
	if c.Most < 1 || c.Most > 1<<20 {
		return l, nil, fmt.Errorf("--max-connections %d: expected a number between 1 and %d", c.Most, 1<<20)
	}
	l = server.Listening{Address: net.JoinHostPort(c.Host, strconv.Itoa(c.port(m))), Cert: c.TLSCert, Key: c.TLSKey, Grace: c.Grace, Connections: c.Most}
	listener, err = l.Listen(ctx)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; choose another port with --port", err)
	}
	if err == nil && l.Connections < c.Most {
		fmt.Fprintf(m.Stderr, "note: at most %d connections, because of the limit on open files (ulimit -n)\n", l.Connections)
	}
	return l, listener, err
}

// name returns the model's name in responses; "": the model's own.
func (c *serveCmd) name() string { return cmp.Or(append([]string{c.Name}, c.Alias...)...) }

// port returns the port of the flag, or of the model spec, or 8080.
func (c *serveCmd) port(m *model) int {
	if c.Port != nil {
		return *c.Port
	}
	return cmp.Or(m.manifest.Engine.Port, 8080)
}

// answers adds the endpoints that the model supports: completions, chats,
// structured output, embeddings, translations, mask filling, reranking.
func (c *serveCmd) answers(m *model, eng *engine.Engine, s *scheduler.Scheduler, cfg *server.Config) (err error) {
	cfg.Page = page.Handler()
	if len(m.embedded.Tokenizer) > 0 {
		if cfg.Tokenizer, err = m.tokenizer(); err != nil {
			return err
		}
		choice, err := templateText(c.Template)
		if err != nil {
			return err
		}
		cfg.Template, err = chat.Open(m.bin.Templates(), cfg.Tokenizer, choice)
		switch {
		case err != nil && c.Template != "":
			return wrong(err)
		case err != nil:
			cfg.Template = nil
			if m.manifest.Template != "" {
				fmt.Fprintf(m.Stderr, "note: /v1/chat/completions is not served: %v\n", err)
			}
		}
		eos, format := cfg.Defaults.EOS, grammar.CallFormat{}
		if cfg.Template != nil {
			eos = cfg.Template.Stops(cfg.Tokenizer, eos)
			format = cfg.Template.CallFormat()
		}
		cfg.Constrain = constrain(m.manifest.Vocab, cfg.Tokenizer, eos, format)
	}
	if e := embedder.New(m.manifest, m.bin.EncodeWhole, eng, s); e != nil {
		cfg.Embedder = e
	}
	cfg.Translate, cfg.Fill, cfg.Reranker = translations(m, s, c.Ignore, cfg.Drafter), filler(m, eng, s), reranks(m, eng, s)
	return nil
}

// heapGrowth is the growth of Go's heap before a collection, in percent. The
// heap is small compared with the model, and the collector takes cores from the
// model's threads.
const heapGrowth = 400

// open plans the memory and starts the engine.
func (c *serveCmd) open(ctx context.Context, m *model, drafts *drafting) (*engine.Engine, *memoryPlan, error) {
	debug.SetGCPercent(heapGrowth)
	opt, err := c.options(m)
	if err != nil {
		return nil, nil, err
	}
	if m.manifest.Network == decoderOnly || m.manifest.Network == encoderDecoder {
		opt.Draft = drafts.tokens
	}
	c.Threads = cmp.Or(c.Threads, m.manifest.Engine.Threads)
	opt.Threads, opt.AdapterBytes = c.Threads, int64(*c.AdapterMemory)
	plan, opt, err := c.planMemory(m, opt)
	if err != nil {
		return nil, nil, err
	}
	eng, err := m.engine(ctx, &c.engineFlags, opt)
	return eng, plan, err
}

// describePlan returns the engine's memory and limits as text.
func describePlan(p engine.Memory, opt engine.Options) string {
	mb := func(n int64) float64 { return float64(n) / 1e6 }
	more := ""
	if p.States > 0 {
		more = fmt.Sprintf("fixed-size states %.1f MB (%d cells of %.1f MB, at least one per sequence), ", mb(p.States), opt.Cells, mb(p.CellBytes))
	}
	if p.Adapters > 0 {
		more += fmt.Sprintf("adapters %.1f MB, ", mb(p.Adapters))
	}
	return fmt.Sprintf("model memory: weights %.1f MB, KV cache %.1f MB (%d pages of 64 tokens), %sactivations %.1f MB; %.1f of %.1f MB available\nat most %d concurrent sequences, context %d, %d threads",
		mb(p.Weights), mb(p.KVCache), opt.Pages, more, mb(p.Scratch+p.Results), mb(p.Total()), mb(p.Available), opt.MaxSeqs, opt.Context, opt.Threads)
}

// logger returns the logger for the flags.
func (c *serveCmd) logger(m *model) *slog.Logger {
	switch c.Log {
	case "json":
		return slog.New(slog.NewJSONHandler(m.Stderr, nil))
	case "none":
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(m.Stderr, nil))
}
