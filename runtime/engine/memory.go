//go:build unix

package engine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/hostmem"
)

// Memory is the memory that an engine needs, in bytes.
type Memory struct {
	Weights   int64 `json:"weights"`
	KVCache   int64 `json:"kv_cache"`             // all pages
	States    int64 `json:"states,omitempty"`     // fixed-size states: all cells
	Adapters  int64 `json:"adapters,omitempty"`   // matrices of LoRA adapters: Options.AdapterBytes
	Scratch   int64 `json:"scratch"`              // working memory of a step
	Results   int64 `json:"results"`              // output rows of a step
	PageBytes int64 `json:"page_bytes"`           // size of one KV cache page
	CellBytes int64 `json:"cell_bytes,omitempty"` // size of one cell: the fixed-size states of a sequence between two steps
	Available int64 `json:"available"`            // on this machine; 0: unknown
}

// Total returns the sum of all parts.
func (m Memory) Total() int64 {
	return m.Weights + m.KVCache + m.States + m.Adapters + m.Scratch + m.Results
}

// Check returns an error if the machine has less memory than the engine needs.
func (m Memory) Check() error {
	missing := m.Total() - m.Available
	if m.Available == 0 || missing <= 0 {
		return nil
	}
	more := ""
	if m.States > 0 {
		more = fmt.Sprintf(", fixed-size states %d", mega(m.States))
	}
	if m.Adapters > 0 {
		more += fmt.Sprintf(", adapters %d", mega(m.Adapters))
	}
	return fmt.Errorf("%d MB are needed (weights %d, KV cache %d%s, step %d), but %d MB are available: %d MB are missing; lower the context, the concurrency or the KV cache pages",
		mega(m.Total()), mega(m.Weights), mega(m.KVCache), more, mega(m.Scratch+m.Results), mega(m.Available), mega(missing))
}

// mega converts bytes to MB, rounded up.
func mega(bytes int64) int64 { return (bytes + 999_999) / 1_000_000 }

// leastContext is the number of tokens below which Plan does not lower a context.
const leastContext = 2048

// Plan returns the memory that an engine with these options needs, and the options with
// all defaults filled in. If opt.Pages is 0 and full contexts for all sequences do not
// fit into opt.Memory, or 4/5 of the available memory, Plan lowers the number of pages to
// what fits, but not below one full context. If opt.Context is 0, Plan lowers the context to what
// the pages hold, but not below 2,048 tokens. If opt.Cells is 0, the cells for the prefix cache take
// at most a quarter of what weights and sequences leave. The pages of a model without a
// KV cache take no memory: they only count rows, so full contexts always fit. The error is that of Memory.Check, or one of invalid
// options.
func Plan(m Model, opt Options) (Memory, Options, error) {
	open, openCells, openContext := opt.Pages == 0, opt.Cells == 0, opt.Context == 0
	e, outputs, err := prepare(m, opt)
	if err != nil {
		return Memory{}, opt, err
	}
	opt = e.opt
	info := m.Device.Info()
	mem := Memory{Available: hostmem.Available()}
	if own, ok := m.Device.(interface{ FreeBytes() int64 }); ok { // memory that is not the host's
		mem.Available = cmp.Or(own.FreeBytes(), mem.Available)
	}
	limit := mem.Available / 5 * 4
	if opt.Memory > 0 {
		mem.Available, limit = opt.Memory, opt.Memory
	}
	for _, w := range m.Manifest.Weights {
		mem.Weights = max(mem.Weights, w.Offset+w.Bytes)
	}
	mem.Weights, mem.PageBytes = cmp.Or(info.WeightBytes, mem.Weights), info.PageBytes
	mem.Scratch = m.Device.ScratchBytes(opt.shapes())
	for _, o := range outputs {
		mem.Results += int64(o.Rows) * int64(o.Cols) * 4
	}
	mem.CellBytes, mem.Adapters = info.CellBytes, opt.AdapterBytes
	room := limit - mem.Weights - mem.Adapters - mem.Scratch - mem.Results
	if needed := opt.needCells(); openCells && opt.Cells > needed && mem.Available > 0 && mem.CellBytes > 0 {
		left := max(0, room-int64(needed)*mem.CellBytes) / 4
		opt.Cells = needed + int(min(int64(opt.cachedCells()), left/mem.CellBytes))
	}
	mem.States = int64(opt.Cells) * mem.CellBytes
	room -= mem.States
	texts := 1 // of a sequence
	if e.source >= 0 {
		texts = 2
	}
	if open && mem.Available > 0 && mem.PageBytes > 0 {
		fit := int(room / mem.PageBytes)
		least := texts * pagesFor(opt.Context)
		if openContext {
			least = min(least, texts*pagesFor(leastContext))
		}
		opt.Pages = min(opt.Pages, max(least, fit))
	}
	if held := opt.Pages / texts * pageRows; openContext && mem.PageBytes > 0 {
		opt.Context = min(opt.Context, max(held, 1))
	}
	mem.KVCache = int64(opt.Pages) * mem.PageBytes
	return mem, opt, mem.Check()
}

const (
	// firstKVBytes is the size of the part of the KV cache that comes into use first. Each
	// further part doubles what is in use.
	firstKVBytes = 64 << 20
	// spared is what growth leaves of the available memory.
	spared = 64 << 20
	// growthPause is the time for which a lack of memory is remembered.
	growthPause = time.Second
)

// growth returns how the KV cache comes into use: twice as many pages each time, as long as
// the machine, or its cgroup, has memory for them. Else pages are evicted from the prefix
// cache. It returns nil for a device with memory of its own, which is allocated at once.
func (e *Engine) growth() func() int {
	info := e.dev.Info()
	if info.OwnMemory || info.PageBytes == 0 {
		return nil
	}
	var short time.Time // when memory was short
	return func() int {
		if time.Since(short) < growthPause {
			return 0
		}
		n := max(e.pages.granted, int(firstKVBytes/info.PageBytes), 1)
		if available := hostmem.Available(); available > 0 && available-int64(n)*info.PageBytes < spared {
			short = time.Now()
			return 0
		}
		return n
	}
}
