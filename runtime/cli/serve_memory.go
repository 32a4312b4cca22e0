//go:build unix

package cli

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/bytesize"
	"github.com/iflowc/iflowc/runtime/kit/hostmem"
	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// memoryFlags bound the memory of a service.
type memoryFlags struct {
	Whole          bytesize.Size  `name:"memory" placeholder:"SIZE" help:"Maximum memory of the process, such as 4G or 512Mi: the model's and all of the below (default: 9/10 of what the machine or its cgroup has left)."`
	Body           bytesize.Size  `name:"max-body" default:"4Mi" placeholder:"4Mi" help:"Maximum request body."`
	RequestMemory  *bytesize.Size `name:"request-memory" placeholder:"SIZE" help:"Maximum memory of all requests; more get status 429 (default: 512Mi, or what --memory leaves)."`
	ResponseMemory *bytesize.Size `name:"response-memory" placeholder:"SIZE" help:"Maximum memory of stored responses (/v1/responses); the oldest of the largest client make room (default: 64Mi, or what --memory leaves)."`
}

// leastRequests is the minimum of --request-memory.
const leastRequests = 16 << 20

func (f *memoryFlags) check() error {
	switch {
	case f.Body < 1 || f.Body > 1<<32:
		return fmt.Errorf("--max-body %d: expected between 1 byte and 4Gi", f.Body)
	case f.RequestMemory != nil && (*f.RequestMemory < leastRequests || *f.RequestMemory < 8*f.Body):
		return fmt.Errorf("--request-memory %d: expected at least 16Mi, and 8 times --max-body (%d)", *f.RequestMemory, f.Body)
	case f.ResponseMemory != nil && *f.ResponseMemory < 1:
		return errors.New("--response-memory: expected more than 0; to store nothing, requests set \"store\": false")
	}
	return nil
}

// A memoryPlan divides the memory of a service. All numbers are bytes.
type memoryPlan struct {
	engine.Memory
	requests  int64 // of all requests
	responses int64 // of stored responses
	own       int64 // of the server besides: connections, masks of grammars, logits that wait for a mask, uncollected garbage
	loaded    int64 // Go's memory before the service starts: the tokenizer and the binary's files
}

// The parts of the heap where memory does not run short. script/attack measures own.
const (
	usualRequests  = 512 << 20
	usualResponses = 64 << 20
	usualOwn       = 384 << 20
)

// heap returns the memory of the parts of Go's heap.
func (p *memoryPlan) heap() int64 { return p.requests + p.responses + p.own }

// shrink lowers the parts that no flag sets to a part of 1, so that they have at most most
// bytes together. Requests keep what 8 bodies need.
func (f *memoryFlags) shrink(usual memoryPlan, most int64) memoryPlan {
	part := min(1, float64(most)/float64(usual.heap()))
	p := usual
	if f.RequestMemory == nil {
		p.requests = max(int64(part*float64(usual.requests)), leastRequests, 8*int64(f.Body))
	}
	if f.ResponseMemory == nil {
		p.responses = max(int64(part*float64(usual.responses)), 1<<20)
	}
	p.own = max(int64(part*float64(usual.own)), leastOwn)
	return p
}

// leastOwn is what a server with few connections and small grammars needs.
const leastOwn = 24 << 20

// planMemory divides the memory that the process may use: a quarter, or what is usual if
// that is less, is for the server, the rest for the model. A model that does not fit gets
// some of the server's part. What the model does not use goes back to the server.
func (c *serveCmd) planMemory(m *model, opt engine.Options) (*memoryPlan, engine.Options, error) {
	if len(m.embedded.Tokenizer) > 0 {
		if _, err := m.tokenizer(); err != nil {
			return nil, opt, err
		}
	}
	usual := memoryPlan{requests: usualRequests, responses: usualResponses, own: usualOwn + 4*int64(opt.MaxSeqs*m.manifest.Vocab), loaded: goMemory()}
	if c.RequestMemory != nil {
		usual.requests = int64(*c.RequestMemory)
	}
	if c.ResponseMemory != nil {
		usual.responses = int64(*c.ResponseMemory)
	}
	if c.AdapterDir != "" {
		usual.own += int64(*c.AdapterMemory) // one adapter is packed before it is copied to the device
	}
	left := hostmem.Available() / 10 * 9
	if c.Whole > 0 {
		left = max(int64(c.Whole)-hostmem.Resident(), 1)
	}
	if left == 0 { // unknown
		mem, opt, err := m.plan(&c.engineFlags, opt)
		usual.Memory = mem
		return &usual, opt, err
	}
	dev, err := m.device(&c.engineFlags)
	if err != nil {
		return nil, opt, err
	}
	least := c.shrink(usual, 0)
	for _, p := range []memoryPlan{c.shrink(usual, left/4), least} {
		tried := opt
		if !dev.Info().OwnMemory {
			tried.Memory = max(left-p.heap(), 1)
		}
		var mem engine.Memory
		if mem, tried, err = m.plan(&c.engineFlags, tried); err != nil {
			continue
		}
		if tried.Memory > 0 {
			p = c.shrink(usual, left-mem.Total())
		}
		p.Memory = mem
		return &p, tried, nil
	}
	return nil, opt, wrong(fmt.Errorf("%w; the server itself needs %d MB: raise --memory or the container's limit, or lower --context, --parallel, --pages, --batch-tokens, --max-body or --lora-memory", err, least.heap()>>20))
}

// limitHeap sets Go's memory limit and that of masks.
func (p *memoryPlan) limitHeap() {
	debug.SetMemoryLimit(p.loaded + p.heap())
	grammar.SetMemory(p.own / 3)
}

// connections returns how many connections the server's own memory allows, and says so if
// they are fewer than most.
func (p *memoryPlan) connections(m *model, most int) int {
	const bytes = usualOwn / 4096 // of a connection
	n := int(min(p.own/bytes, int64(most)))
	if n < most {
		m.say("note: at most %d connections, because of the memory; --memory sets it", n)
	}
	return n
}

// String describes the limit for the user.
func (p *memoryPlan) String() string {
	return fmt.Sprintf("server memory: at most %.0f MB in all, %.0f MB of it for requests", float64(p.Total()+p.loaded+p.heap())/1e6, float64(p.requests)/1e6)
}

// goMemory returns the memory that Go's runtime has from the system.
func goMemory() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.Sys - s.HeapReleased)
}
