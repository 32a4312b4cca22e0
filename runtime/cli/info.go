//go:build unix

package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/kit/printable"
)

type infoCmd struct {
	engineFlags `embed:""`
	IR          bool `name:"ir" help:"Print the compiled module's IR."`
	Spec        bool `help:"Print the model spec."`
	JSON        bool `name:"json" help:"Print one JSON document."`
}

// information is the subcommand's JSON document.
type information struct {
	*manifest.Manifest
	Bytes    int64    `json:"weight_bytes"`
	ISA      string   `json:"isa"` // chosen for this CPU; "": none is supported
	Threads  int      `json:"threads"`
	Dispatch []choice `json:"dispatch"`
	IR       string   `json:"ir,omitempty"`
	Spec     string   `json:"spec,omitempty"`
	Random   *uint64  `json:"random_weights,omitempty"` // seed of random weights

	Ranks []rankInfo `json:"ranks,omitempty"` // of a partitioned model

	Adapters []adapterInfo `json:"adapters,omitempty"` // of --lora
}

// A choice is one matmul's dispatch, in the syntax of the IR.
type choice struct {
	Matmul string `json:"matmul"`
	N      int    `json:"n"`
	K      int    `json:"k"`
	DType  string `json:"dtype"`
	Act    string `json:"activations"` // a8_b64, or with outliers a8_b64+2
	Use    string `json:"use"`
}

// activations describes how a matmul's input is rounded.
func activations(s *manifest.Matmul) string {
	if s.Outliers == 0 {
		return s.Act
	}
	return fmt.Sprintf("%s+%d", s.Act, s.Outliers)
}

// Run prints the contents of the binary. It needs no weights.
func (c *infoCmd) Run(m *model) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.IR && !c.JSON {
		_, err := fmt.Fprint(m.Stdout, printable.Text(m.embedded.IR))
		return err
	}
	if c.Spec && !c.JSON {
		_, err := fmt.Fprint(m.Stdout, printable.Text(m.embedded.Spec))
		return err
	}
	info, err := c.collect(m)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(m.Stdout, info)
	}
	return info.print(m)
}

func (c *infoCmd) collect(m *model) (*information, error) {
	info := &information{Manifest: m.manifest, Threads: cmp.Or(c.Threads, m.manifest.Engine.Threads), Bytes: weightBytes(m.manifest)}
	if info.Threads == 0 {
		info.Threads = cpu.DefaultThreads()
	}
	if i, err := cpu.ChooseISA(m.manifest.Libs, c.ISA); err == nil {
		info.ISA = m.manifest.Libs[i].ISA
	} else if c.ISA != "" {
		return nil, wrong(err)
	}
	if seed, ok := m.bin.RandomWeights(c.Weights); ok {
		info.Random = &seed
	}
	table, err := m.dispatchTable(&c.engineFlags)
	if err != nil {
		return nil, err
	}
	if err := info.ranks(m); err != nil {
		return nil, err
	}
	if info.Adapters, err = m.describeAdapters(&c.engineFlags); err != nil {
		return nil, err
	}
	for i, s := range m.manifest.Matmuls {
		info.Dispatch = append(info.Dispatch, choice{s.Name, s.N, s.K, s.DType, activations(&s), dispatch.Describe(s, table[i*dispatch.Rows:][:dispatch.Rows])})
	}
	if c.IR {
		info.IR = m.embedded.IR
	}
	if c.Spec {
		info.Spec = m.embedded.Spec
	}
	return info, nil
}

func (i *information) print(m *model) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("model", "%s (%s)", i.Name, i.Network)
	line("compiler", "iflowc %s", i.Compiler)
	line("hash", "%s", i.Hash)
	line("parameters", "%s (%d)", count(i.Params), i.Params)
	line("vocabulary", "%d", i.Vocab)
	line("context", "%d", i.Context)
	if len(i.Ranks) == 0 {
		line("weights", "%.1f MB in %d tensors", float64(i.Bytes)/1e6, len(i.Weights))
	}
	if i.Random != nil {
		line("weights", "random weights (seed %d)", *i.Random)
	}
	for r, k := range i.Ranks {
		line("rank", "%d on device %s: layers %d to %d, part %d of %d, weights %.1f MB", r, k.Device, k.Lo, k.Hi-1, k.TPRank+1, k.TPSize, float64(k.Bytes)/1e6)
	}
	for _, k := range slices.Sorted(maps.Keys(i.Types)) {
		line("  "+k, "%s", i.Types[k])
	}
	if i.Medusa != nil {
		line("medusa", "%s", i.Medusa)
	}
	for _, a := range i.Adapters {
		line("adapter", "%s: rank %d, %d matrices, %.1f MB", a.Name, a.Rank, a.Matrices, float64(a.Bytes)/1e6)
	}
	for _, s := range i.States {
		line("state", "%s", describeState(&s))
	}
	i.printCode(line, m.embedded.Libs)
	line("threads", "%d", i.Threads)
	for _, e := range append(engineLines(&i.Manifest.Engine), templateLines(i.Manifest)...) {
		line("engine", "%s", e)
	}
	for _, c := range i.Dispatch {
		line("dispatch", "%s [%d, %d] %s × %s: %s", c.Matmul, c.N, c.K, c.DType, c.Act, c.Use)
	}
	for _, k := range slices.Sorted(maps.Keys(i.Inputs)) {
		line("input", "%s  %s", i.Inputs[k], k)
	}
	_, err := fmt.Fprint(m.Stdout, printable.Text(b.String())) // names are from the model's files
	return err
}

// printCode lists the code for CPUs and for GPUs, which is in files.
func (i *information) printCode(line func(name, format string, args ...any), files map[string]string) {
	for _, l := range i.Libs {
		mark := ""
		if l.ISA == i.ISA {
			mark = "  (used here)"
		}
		line("library", "%s, %d bytes%s", l.ISA, len(files[l.File]), mark)
	}
	if list := i.CUDAFiles(); len(list) > 0 {
		bytes := 0
		for _, f := range list {
			bytes += len(files[f])
		}
		what := "for GPUs"
		if i.CUDADriver != "" {
			what = "emulated, for tests; not for use"
		}
		line("cuda", "%s, %d bytes in %d files", what, bytes, len(list))
	}
}

// weightBytes returns the size of the packed weights.
func weightBytes(m *manifest.Manifest) (n int64) {
	for _, w := range m.Weights {
		n += w.Bytes
	}
	return n
}

// describeState returns a state's size as text.
func describeState(s *manifest.State) string {
	if s.CellBytes > 0 {
		return fmt.Sprintf("%s %s, fixed-size, %d × %d bytes a sequence", s.Name, s.Type, s.Count, s.CellBytes)
	}
	return fmt.Sprintf("%s %s, %d × %d bytes a page of %d rows", s.Name, s.Type, s.Count, s.PageBytes, s.PageRows)
}
