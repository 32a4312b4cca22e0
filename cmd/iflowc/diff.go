//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor/npz"
)

type diffCmd struct {
	Spec       string  `arg:"" help:"Model spec (YAML), model_spec.json, model folder, .gguf or llama2.c file, library name (iflowc list), or pulled OWNER/NAME."`
	ModelDir   string  `help:"Folder with the model's files (default: model_dir of the spec, else the spec's folder)." type:"path" placeholder:"DIR"`
	Ref        string  `required:"" help:"Hidden states from transformers: arrays hidden.N, prompt.hidden.N, encoder.hidden.N or decoder.hidden.N (0: embeddings, N: after layer N, the last: after the final norm), and token ids as ids." type:"path" placeholder:"DUMP.npz"`
	IDs        []int   `name:"ids" help:"Prompt as token ids (default: the dump's array ids)." placeholder:"1,2,3"`
	EncoderIDs []int   `name:"encoder-ids" help:"Source as token ids, for an encoder-decoder." placeholder:"1,2,3"`
	Tol        float64 `help:"Tolerance: a value may differ by TOL plus TOL times the layer's largest value." default:"0.001"`
	JSON       bool    `name:"json" help:"Print one JSON document."`
}

// A layerDiff compares one array of the reference with the model's values.
type layerDiff struct {
	Graph   string  `json:"graph"`
	N       int     `json:"hidden"` // 0: embeddings; N: after layer N
	Value   string  `json:"value"`  // name in the IR
	Pos     string  `json:"position"`
	Op      string  `json:"op"`
	Largest float64 `json:"largest"`    // absolute value of the reference
	Max     float64 `json:"difference"` // largest; NaN and infinities count as MaxFloat64
	Limit   float64 `json:"limit"`
	Leaves  bool    `json:"leaves"`

	token, channel int // of the largest difference
	have, want     float64
	from           ir.Pos // where the layer's ops begin
	layers         int    // of the graph
}

// errLeaves is the error of a model whose values differ from the reference.
var errLeaves = errors.New("the model differs from the reference")

// Run compares the model with the reference, layer by layer.
func (c *diffCmd) Run(ctx context.Context) error {
	ref, err := npz.Open(c.Ref)
	if err != nil {
		return usageError{err}
	}
	defer ref.Close()
	f := modelFlags{Spec: c.Spec, ModelDir: c.ModelDir, Quant: "f32"}
	m, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	mod, err := loweredAsPrinted(m)
	if err != nil {
		return err
	}
	rows, err := c.compare(mod, m, ref)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return usageError{fmt.Errorf("%s: no array hidden.N or prompt.hidden.N (have %s)", c.Ref, someNames(ref))}
	}
	if c.JSON {
		if err := json.NewEncoder(os.Stdout).Encode(rows); err != nil {
			return err
		}
	} else {
		printDiff(os.Stdout, rows)
	}
	for _, r := range rows {
		if r.Leaves {
			return fmt.Errorf("%w: %s", errLeaves, r.place())
		}
	}
	return nil
}

// loweredAsPrinted lowers a model; the positions of its ops are those of the
// text that `iflowc ir` prints.
func loweredAsPrinted(m *compiler.Model) (*ir.Module, error) {
	mod, err := m.Lower()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := mod.Fprint(&text); err != nil {
		return nil, err
	}
	return ir.Parse(m.Spec.Name+".ir", text.Bytes(), ops.Table)
}

// compare runs the graphs that have arrays in the reference.
func (c *diffCmd) compare(mod *ir.Module, m *compiler.Model, ref *npz.Archive) ([]layerDiff, error) {
	values, states := interp.NewWeights(mod, m.Values()), interp.NewStates()
	both := mod.Graph("encode") != nil && mod.Graph("decode") != nil
	var out []layerDiff
	for _, name := range []string{"encode", "decode"} {
		g := mod.Graph(name)
		if g == nil {
			continue
		}
		kinds, given := []string{"prompt.", ""}, c.IDs
		switch {
		case both && name == "encode":
			kinds, given = []string{"encoder.", "source."}, c.EncoderIDs
		case both:
			kinds = []string{"decoder."}
		}
		ids, err := promptIDs(ref, kinds, given, m.Hyper.Rows)
		if err != nil {
			return nil, err
		}
		places := hiddenPlaces(g)
		step := &interp.Step{IDs: ids, Trace: places.see}
		if _, err := interp.Run(mod, name, step, values, states); err != nil {
			return nil, err
		}
		rows, err := places.compare(ref, kinds, len(ids), c.Tol)
		if err != nil {
			return nil, usageError{err}
		}
		out = append(out, rows...)
	}
	return out, nil
}

// promptIDs returns the token ids of the call, else those of the reference.
func promptIDs(ref *npz.Archive, kinds []string, given []int, vocab int) ([]int, error) {
	ids, from := given, "--ids"
	if ids == nil {
		a, err := ref.First(named(kinds, "ids")...)
		if err != nil {
			return nil, usageError{err}
		}
		if a == nil {
			return nil, usageError{fmt.Errorf("%s: no array %s; give --ids (--encoder-ids for the source of an encoder-decoder)", ref.File, strings.Join(named(kinds, "ids"), " or "))}
		}
		from = ref.File
		for _, x := range a.F {
			if x != math.Trunc(x) {
				return nil, usageError{fmt.Errorf("%s: ids: %g is not a token id", ref.File, x)}
			}
			ids = append(ids, int(max(-1, min(x, math.MaxInt32))))
		}
	}
	for _, id := range ids {
		if id < 0 || id >= vocab {
			return nil, usageError{fmt.Errorf("%s: token id %d, want 0 to %d", from, id, vocab-1)}
		}
	}
	return ids, nil
}

func named(kinds []string, name string) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k+name)
	}
	return out
}

// place describes the place of a comparison and its worst value.
func (d *layerDiff) place() string {
	where := fmt.Sprintf("layer %d", d.N-1)
	switch {
	case d.N == 0:
		where = "the embeddings"
	case d.N == d.layers:
		where += " or the final norm"
	}
	return fmt.Sprintf("graph %s, %s (hidden.%d), value %s of op %s at %s, whose ops begin at line %d of `iflowc ir`; token %d, channel %d: have %g, want %g",
		d.Graph, where, d.N, d.Value, d.Op, d.Pos, d.from.Line, d.token, d.channel, d.have, d.want)
}

// printDiff prints a line per layer.
func printDiff(w io.Writer, rows []layerDiff) {
	fmt.Fprintf(w, "%-7s %7s  %-10s %-22s %11s %11s %11s\n", "graph", "hidden", "value", "position", "largest", "difference", "limit")
	for _, r := range rows {
		mark := ""
		if r.Leaves {
			mark = "  leaves"
		}
		fmt.Fprintf(w, "%-7s %7d  %-10s %-22s %11.4g %11.3g %11.3g%s\n", r.Graph, r.N, r.Value, r.Pos, r.Largest, r.Max, r.Limit, mark)
	}
}

// someNames lists a few arrays of a dump.
func someNames(ref *npz.Archive) string {
	var names []string
	for _, name := range ref.Names() {
		if len(names) == 5 {
			return strings.Join(names, ", ") + ", …"
		}
		names = append(names, strconv.Quote(name))
	}
	return strings.Join(names, ", ")
}
