//go:build unix

package engine

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is what an engine takes, in bytes.
type Memory struct {
	Weights   int64 `json:"weights"`
	State     int64 `json:"state"`      // keys and values of all pages
	Scratch   int64 `json:"scratch"`    // of a step
	Results   int64 `json:"results"`    // rows of a step
	PageBytes int64 `json:"page_bytes"` // of State, a page
	Available int64 `json:"available"`  // on this machine; 0: not known
}

// Total is all that the engine takes.
func (m Memory) Total() int64 { return m.Weights + m.State + m.Scratch + m.Results }

// Check says by how much the engine is too large for the machine.
func (m Memory) Check() error {
	missing := m.Total() - m.Available
	if m.Available == 0 || missing <= 0 {
		return nil
	}
	return fmt.Errorf("%d MB are needed (weights %d, state %d, step %d), %d MB are available: %d MB are missing; lower the context, the concurrency or the state pages",
		mega(m.Total()), mega(m.Weights), mega(m.State), mega(m.Scratch+m.Results), mega(m.Available), mega(missing))
}

// mega is a number of bytes in MB, rounded up.
func mega(bytes int64) int64 { return (bytes + 999_999) / 1_000_000 }

// Plan says what an engine with these options would take, and the options with
// every choice made. Where Pages is left open and enough for every sequence's
// whole context would not fit into 4/5 of what is available, there are as many
// pages as do, but at least one context's.
func Plan(m Model, opt Options) (Memory, Options, error) {
	open := opt.Pages == 0
	e, outputs, err := prepare(m, opt)
	if err != nil {
		return Memory{}, opt, err
	}
	opt = e.opt
	mem := Memory{Available: available()}
	for _, w := range m.Manifest.Weights {
		mem.Weights = max(mem.Weights, w.Offset+w.Bytes)
	}
	info := m.Device.Info()
	mem.Weights, mem.PageBytes = cmp.Or(info.WeightBytes, mem.Weights), info.PageBytes
	mem.Scratch = m.Device.ScratchBytes(opt.shapes())
	for _, o := range outputs {
		mem.Results += int64(o.Rows) * int64(o.Cols) * 4
	}
	if open && mem.Available > 0 && mem.PageBytes > 0 {
		room := mem.Available/5*4 - mem.Weights - mem.Scratch - mem.Results
		least := pagesFor(opt.Context)
		if e.source >= 0 {
			least *= 2
		}
		opt.Pages = min(opt.Pages, max(least, int(room/mem.PageBytes)))
	}
	mem.State = int64(opt.Pages) * mem.PageBytes
	return mem, opt, mem.Check()
}

// available is the memory that the kernel can give this process without
// swapping, within its control group's limit; 0 where that cannot be read.
func available() int64 {
	n := meminfo("/proc/meminfo")
	limit, errLimit := number("/sys/fs/cgroup/memory.max")
	used, errUsed := number("/sys/fs/cgroup/memory.current")
	if errLimit == nil && errUsed == nil {
		n = min(n, max(limit-used, 1))
	}
	return n
}

// meminfo reads MemAvailable.
func meminfo(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// number reads a file that holds one number; "max" is an error.
func number(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
