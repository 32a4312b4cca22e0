package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor/npz/npztest"
)

const tinyModels = "../../spec/testdata/families/"

// A dump holds hidden states as they go into an .npz.
type dump struct {
	ids    []int
	hidden [][]float64
	width  int
}

// dumpOf interprets a tiny model on the ids of its expected.json.
func dumpOf(t *testing.T, folder string) *dump {
	t.Helper()
	var want struct {
		IDs    []int       `json:"ids"`
		Hidden [][]float64 `json:"hidden"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(text), &want)
	m, err := (&modelFlags{Spec: folder, Quant: "f32"}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mod, err := loweredAsPrinted(m)
	if err != nil {
		t.Fatal(err)
	}
	g := mod.Graphs[0]
	p := hiddenPlaces(g)
	if _, err := interp.Run(mod, g.Name, &interp.Step{IDs: want.IDs, Trace: p.see}, interp.NewWeights(mod, m.Values()), interp.NewStates()); err != nil {
		t.Fatal(err)
	}
	d := &dump{ids: want.IDs}
	for _, h := range p.list {
		d.width = h.got.Shape[1]
		d.hidden = append(d.hidden, append([]float64{}, h.got.F...))
	}
	// What does not come from the model itself: transformers' last rows.
	end := d.hidden[len(d.hidden)-1]
	at := len(end) - len(want.Hidden)*d.width
	for i, row := range want.Hidden {
		copy(end[at+i*d.width:], row)
	}
	return d
}

// write writes the dump with arrays of the given first names.
func (d *dump) write(t *testing.T, kind string) string {
	t.Helper()
	arrays := map[string][]byte{kind + "ids": npztest.NPY("<i8", []int{len(d.ids)}, floatsOf(d.ids))}
	for n, h := range d.hidden {
		arrays[fmt.Sprintf("%shidden.%d", kind, n)] = npztest.NPY("<f4", []int{1, len(d.ids), d.width}, h)
	}
	return npztest.Write(t, arrays)
}

func floatsOf(ids []int) []float64 {
	out := make([]float64, len(ids))
	for i, n := range ids {
		out[i] = float64(n)
	}
	return out
}

// TestDiffAgrees: tiny models agree with their reference; the embeddings of
// Llama are rows of the stored table, the last states of DistilBERT those of
// transformers.
func TestDiffAgrees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, kind, ids string }{{"llama", "prompt.", ""}, {"distilbert", "", ""}, {"llama", "other.", "given"}} {
		d := dumpOf(t, tinyModels+c.name)
		if c.name == "llama" {
			m, err := (&modelFlags{Spec: tinyModels + c.name}).open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			table, err := m.Tensors().Float32("model.embed_tokens.weight")
			if err != nil {
				t.Fatal(err)
			}
			m.Close()
			for i, id := range d.ids {
				for k := range d.width {
					d.hidden[0][i*d.width+k] = float64(table[id*d.width+k])
				}
			}
		}
		args := []string{"diff", tinyModels + c.name, "--ref", d.write(t, strings.Replace(c.kind, "other.", "", 1)), "--tol", "1e-4", "--json"}
		if c.ids != "" {
			args = append(args, "--ids", join(d.ids))
		}
		var rows []layerDiff
		decode(t, iflowc(t, args...).succeed(t), &rows)
		if len(rows) != len(d.hidden) {
			t.Errorf("%s: %d rows, want %d", c.name, len(rows), len(d.hidden))
		}
	}
}

// TestDiffNames: the first layer that leaves the reference is named with its
// value and position, in a model whose file is wrong and in a reference that
// is wrong from one layer on.
func TestDiffNames(t *testing.T) {
	t.Parallel()
	d := dumpOf(t, tinyModels+"llama")
	wrong := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(tinyModels+"llama", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "config.json" {
			data = []byte(strings.Replace(string(data), `"rope_theta": 10000.0`, `"rope_theta": 100.0`, 1))
		}
		if err := os.WriteFile(filepath.Join(wrong, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	good := d.write(t, "prompt.")
	out := iflowc(t, "diff", wrong, "--ref", good)
	wantError(t, out, exitFailed, "graph decode, layer 0 (hidden.1)", "of op add")
	if n := strings.Count(out.stdout, "\n"); n != len(d.hidden)+1 {
		t.Errorf("%d lines of the table, want %d:\n%s", n, len(d.hidden)+1, out.stdout)
	}
	m := regexp.MustCompile(`value (%\w+) of op add at \S+:(\d+):\d+`).FindStringSubmatch(out.stderr)
	if m == nil {
		t.Fatalf("no value and position in %s", out.stderr)
	}
	lines := strings.Split(iflowc(t, "ir", wrong).succeed(t), "\n")
	var at int
	fmt.Sscan(m[2], &at)
	if at < 1 || at > len(lines) || !strings.Contains(lines[at-1], m[1]+" = add") {
		t.Errorf("line %d of the IR does not define %s", at, m[1])
	}
	for n, words := range []string{"the embeddings (hidden.0)", "layer 0 (hidden.1)", "layer 1 or the final norm (hidden.2)"} {
		bad := *d
		bad.hidden = append([][]float64{}, d.hidden...)
		bad.hidden[n] = append([]float64{}, d.hidden[n]...)
		bad.hidden[n][3*d.width+5] += 1
		wantError(t, iflowc(t, "diff", tinyModels+"llama", "--ref", bad.write(t, "")), exitFailed, words, "token 3, channel 5")
	}
}

// TestDiffRefuses: a dump or ids that do not fit the model are wrong calls.
func TestDiffRefuses(t *testing.T) {
	t.Parallel()
	d := dumpOf(t, tinyModels+"llama")
	good := d.write(t, "")
	longer := *d
	longer.hidden = append(append([][]float64{}, d.hidden...), d.hidden[0])
	text := filepath.Join(t.TempDir(), "text.npz")
	if err := os.WriteFile(text, []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--ref", text}, "not an .npz archive"},
		{[]string{"--ref", filepath.Join(filepath.Dir(text), "none.npz")}, "none.npz"},
		{[]string{"--ref", good, "--ids", "1,2,3"}, "want 3 tokens of 16 values"},
		{[]string{"--ref", good, "--ids", "1,2,4000"}, "token id 4000"},
		{[]string{"--ref", good, "--ids", "-1"}, ""},
		{[]string{"--ref", longer.write(t, "")}, "graph decode has 2 layers"},
		{[]string{"--ref", d.write(t, "other.")}, "give --ids"},
		{[]string{"--ref", d.write(t, "other."), "--ids", "1,2"}, "no array hidden.N"},
		{nil, "--ref"},
	} {
		wantError(t, iflowc(t, append([]string{"diff", tinyModels + "llama"}, c.args...)...), exitUsage, c.want)
	}
}

// TestDiffJSON: a difference that is no number is still JSON.
func TestDiffJSON(t *testing.T) {
	t.Parallel()
	d := dumpOf(t, tinyModels+"llama")
	d.hidden[1][0] = math.NaN()
	out := iflowc(t, "diff", tinyModels+"llama", "--ref", d.write(t, ""), "--json")
	var rows []layerDiff
	if err := json.Unmarshal([]byte(out.stdout), &rows); err != nil || out.code != exitFailed || !rows[1].Leaves || rows[0].Leaves || rows[2].Leaves {
		t.Errorf("exit %d, %v: %s", out.code, err, out.stdout)
	}
}
