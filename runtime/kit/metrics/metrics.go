// Package metrics implements counters, gauges and histograms with at most one label
// each, and writes them in the Prometheus text format (version 0.0.4), on request
// under other names too.
package metrics

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Registry holds metrics in the order of their registration.
type Registry struct {
	list    []metric
	aliases []Alias
	fixed   string // labels of the aliases
}

// A metric writes itself, under the name and with the labels of h.
type metric interface {
	heading() head
	write(w *bufio.Writer, h head)
}

// head is the part that all metrics share.
type head struct {
	name, help, kind string
	fixed            string // labels of an alias, as name="value",…
}

func (h head) heading() head { return h }

func (h head) write(w *bufio.Writer) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", h.name, escape(h.help), h.name, h.kind)
}

// labels returns a metric's own label, which may be "", and the fixed ones, in braces.
func (h head) labels(own string) string {
	all := strings.Trim(own+","+h.fixed, ",")
	if all == "" {
		return ""
	}
	return "{" + all + "}"
}

func label(name, value string) string { return name + `="` + escape(value) + `"` }

// An Alias is another name of a metric.
type Alias struct{ Name, Of string }

// Also writes metrics under further names as well, with the given label.
func (r *Registry) Also(aliases []Alias, name, value string) {
	r.aliases, r.fixed = aliases, label(name, value)
}

// WriteTo writes all metrics.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	c := &countingWriter{w: w}
	b := bufio.NewWriter(c)
	for _, m := range r.list {
		m.write(b, m.heading())
	}
	for _, a := range r.aliases {
		for _, m := range r.list {
			if h := m.heading(); h.name == a.Of {
				h.name, h.fixed = a.Name, r.fixed
				m.write(b, h)
			}
		}
	}
	err := b.Flush()
	return c.n, err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// A Counter is a monotonic counter, or one per value of a label.
type Counter struct {
	head
	label  string // "": none
	mu     sync.Mutex
	values map[string]float64
}

// Counter registers a counter; its name ends in _total.
func (r *Registry) Counter(name, help, label string) *Counter {
	c := &Counter{head: head{name: name, help: help, kind: "counter"}, label: label, values: map[string]float64{}}
	if label == "" {
		c.values[""] = 0
	}
	r.list = append(r.list, c)
	return c
}

// Add adds n; value is the label's value, "" without a label.
func (c *Counter) Add(n float64, value string) {
	c.mu.Lock()
	c.values[value] += n
	c.mu.Unlock()
}

// Value returns the current count.
func (c *Counter) Value(value string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[value]
}

func (c *Counter) write(w *bufio.Writer, h head) {
	h.write(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range slices.Sorted(maps.Keys(c.values)) {
		own := ""
		if c.label != "" {
			own = label(c.label, v)
		}
		fmt.Fprintf(w, "%s%s %s\n", h.name, h.labels(own), number(c.values[v]))
	}
}

// Func registers a gauge or, if kind is "counter", a counter with a value that is
// computed when metrics are written.
func (r *Registry) Func(kind, name, help string, value func() float64) {
	r.list = append(r.list, &function{head{name: name, help: help, kind: kind}, value})
}

type function struct {
	head
	value func() float64
}

func (f *function) write(w *bufio.Writer, h head) {
	h.write(w)
	fmt.Fprintf(w, "%s%s %s\n", h.name, h.labels(""), number(f.value()))
}

// A Histogram counts values in buckets.
type Histogram struct {
	head
	bounds []float64 // upper bounds, ascending
	mu     sync.Mutex
	counts []uint64 // one more than bounds, for +Inf
	sum    float64
}

// Histogram registers a histogram with the given upper bounds and +Inf.
func (r *Registry) Histogram(name, help string, bounds []float64) *Histogram {
	h := &Histogram{head: head{name: name, help: help, kind: "histogram"}, bounds: bounds, counts: make([]uint64, len(bounds)+1)}
	r.list = append(r.list, h)
	return h
}

// Observe counts a value in the first bucket with a bound of at least v.
func (h *Histogram) Observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.mu.Lock()
	h.counts[i]++
	h.sum += v
	h.mu.Unlock()
}

// Count returns the number of observed values.
func (h *Histogram) Count() (n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.counts {
		n += c
	}
	return n
}

func (h *Histogram) write(w *bufio.Writer, as head) {
	as.write(w)
	h.mu.Lock()
	defer h.mu.Unlock()
	total := uint64(0)
	for i, c := range h.counts {
		total += c
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		fmt.Fprintf(w, "%s_bucket%s %d\n", as.name, as.labels(label("le", number(bound))), total)
	}
	fmt.Fprintf(w, "%s_sum%s %s\n%s_count%s %d\n", as.name, as.labels(""), number(h.sum), as.name, as.labels(""), total)
}

// number formats a value in Prometheus' format.
func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// escape escapes a help text or a label value.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(s)
}
