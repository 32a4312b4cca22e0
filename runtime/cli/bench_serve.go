//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/http/loadgen"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// benchCmds are the benchmarks of the model and of a server.
type benchCmds struct {
	Model benchCmd      `cmd:"" default:"withargs" help:"Measure the model's speed and its bandwidth and compute utilization."`
	Serve benchServeCmd `cmd:"" help:"Measure a running server: TTFT, ITL, throughput and goodput."`
}

type benchServeCmd struct {
	URL         string        `name:"url" default:"http://127.0.0.1:8080" placeholder:"http://127.0.0.1:8080" help:"Server with an OpenAI-compatible API."`
	Key         string        `name:"api-key" env:"IFLOWC_API_KEY" placeholder:"KEY" help:"API key."`
	Names       []string      `name:"name" placeholder:"NAME" help:"Model name in requests; several take turns, such as LoRA adapters."`
	Requests    int           `default:"64" placeholder:"64" help:"Number of requests."`
	Concurrency int           `default:"8" placeholder:"8" help:"Maximum concurrent requests; 0 is no limit."`
	Rate        float64       `placeholder:"R" help:"Requests per second, with random arrivals (default: closed loop)."`
	Prompt      int           `default:"32" placeholder:"32" help:"Words per prompt."`
	Gen         int           `default:"64" placeholder:"64" help:"Tokens per response."`
	Trace       string        `placeholder:"FILE" type:"path" help:"Requests from a JSONL file with the keys at (seconds), prompt or prompt_words, max_tokens, class."`
	Seed        uint64        `placeholder:"S" help:"Random seed."`
	TTFT        time.Duration `name:"max-ttft" default:"1s" placeholder:"1s" help:"Goodput: maximum TTFT of a request."`
	ITL         time.Duration `name:"max-itl" default:"100ms" placeholder:"100ms" help:"Goodput: maximum mean ITL of a request."`
	Plot        string        `placeholder:"FILE.svg|.png" type:"path" help:"Also plot the distributions."`
	JSON        bool          `name:"json" help:"Print one JSON document."`
}

// Run sends requests to the server and prints the clients' measurements.
func (c *benchServeCmd) Run(ctx context.Context, m *model) error {
	if c.Requests < 1 || c.Requests > 1_000_000 || c.Concurrency < 0 || c.Rate < 0 || c.Prompt < 1 || c.Gen < 1 {
		return wrong(fmt.Errorf("--requests %d --concurrency %d --rate %v --prompt %d --gen %d: expected positive numbers", c.Requests, c.Concurrency, c.Rate, c.Prompt, c.Gen))
	}
	if err := checkPlot(c.Plot); err != nil {
		return err
	}
	cfg := loadgen.Config{
		URL: strings.TrimSuffix(strings.TrimSuffix(c.URL, "/"), "/v1"), Key: c.Key, Models: c.Names, Requests: c.Requests, Concurrency: c.Concurrency,
		Rate: c.Rate, Prompt: c.Prompt, Output: c.Gen, Seed: c.Seed, MaxTTFT: c.TTFT, MaxITL: c.ITL,
	}
	if c.Trace != "" {
		var err error
		if cfg.Trace, err = readTrace(c.Trace); err != nil {
			return wrong(err)
		}
		cfg.Concurrency = 0
	}
	// The server may be on this machine, and clients that wake each other on
	// all of its cores slow it down. On two cores, limiting clients to one gave
	// 16 of them 2 % more tok/s.
	runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/4))
	report, err := loadgen.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if c.Plot != "" {
		if err := report.Figure().Write(c.Plot); err != nil {
			return err
		}
	}
	if c.JSON {
		return writeJSON(m.Stdout, report)
	}
	report.Print(m.Stdout)
	return nil
}

// Bounds of a file of requests: its bytes (a million requests take 100 MB), and the words of
// a prompt.
const (
	maxTrace = 256 << 20
	maxWords = 10_000_000
)

// readTrace reads the requests of a file.
func readTrace(path string) (list []loadgen.Arrival, err error) {
	text, err := regular.Read(path, maxTrace)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		var a loadgen.Arrival
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		if a.Words < 0 || a.Words > maxWords {
			return nil, fmt.Errorf("%s: line %d: prompt_words: expected a whole number from 0 to %d", path, n, maxWords)
		}
		if a.MaxTokens < 1 || a.At < 0 || len(list) > 0 && a.At < list[len(list)-1].At {
			return nil, fmt.Errorf("%s: line %d: expected max_tokens of 1 or more, and times that do not go back", path, n)
		}
		list = append(list, a)
	}
	return list, nil
}
