package spec

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

var keyTable = flag.Bool("keys-table", false, "print what becomes of the recorded changes of each family; with IFLOWC_TEST_ALL=1 of all")

// A keyModel holds the changes of a tiny model's config.json that tools/check/keys
// recorded.
type keyModel struct {
	Model   string
	Edits   []keyChange // of the file: rope's parameters in their other form
	Tried   int         // changes
	Refused int         // by transformers
	Unfit   int         // for which the weights do not fit
	Changes []keyChange

	family string
	raw    []byte // config.json
	want   expected
	stored interp.Source
	set    *checkpoint.Set
	text   string    // of the unchanged module
	base   []float64 // its results

	// By the module's text, as many changes have the same effect.
	modules  map[string]*ir.Module
	computed map[string][]float64
}

func (m *keyModel) String() string {
	if len(m.Edits) > 0 {
		return m.Model + ", other form"
	}
	return m.Model
}

// A keyChange is a key of config.json with another value, and a few of transformers'
// results if they change.
type keyChange struct {
	Key   string // with the keys of the sections that contain it, separated by dots
	Value json.RawMessage
	Want  []float64
}

func (c keyChange) String() string {
	if c.Value == nil {
		return c.Key + " removed"
	}
	return c.Key + "=" + string(c.Value)
}

// What becomes of a change.
const (
	keyIgnored = "no effect"
	keyHonored = "honored"
	keyRefused = "refused"
	keySilent  = "SILENT"
)

// TestKeys changes keys of config.json as tools/check/keys did. Where transformers computes
// something else, the result must be the same or the configuration refused; where it does
// not, the result must not change.
func TestKeys(t *testing.T) {
	t.Parallel()
	models := keyModels(t)
	var mu sync.Mutex
	became := map[string]map[string]int{} // by family
	for _, m := range irtest.SampleBy(t, 6, models, (*keyModel).String) {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			m.open(t)
			count := map[string]int{"models": 1 - min(1, len(m.Edits)), "tried": m.Tried, "refused by transformers": m.Refused, "need other weights": m.Unfit}
			for _, c := range irtest.SampleBy(t, 8, m.Changes, keyChange.String) {
				what, err := m.check(t, c)
				if count[what]++; what == keySilent {
					t.Errorf("%s: %v", c, err)
				} else if err != nil && *keyTable {
					t.Logf("%s: %v", c, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if became[m.family] == nil {
				became[m.family] = map[string]int{}
			}
			for what, n := range count {
				became[m.family][what] += n
			}
		})
	}
	t.Cleanup(func() {
		if *keyTable {
			printKeyTable(became)
		}
	})
}

func printKeyTable(became map[string]map[string]int) {
	columns := []string{"models", "tried", "refused by transformers", "need other weights", keyIgnored, keyHonored, keyRefused, keySilent}
	fmt.Printf("| family | %s |\n|---%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	sum := map[string]int{}
	row := func(name string, count map[string]int) {
		fmt.Printf("| %s |", name)
		for _, c := range columns {
			fmt.Printf(" %d |", count[c])
		}
		fmt.Println()
	}
	for _, family := range slices.Sorted(maps.Keys(became)) {
		row(family, became[family])
		for what, n := range became[family] {
			sum[what] += n
		}
	}
	row("all", sum)
}

// keyModels reads the recorded changes.
func keyModels(t *testing.T) []*keyModel {
	t.Helper()
	f, err := os.Open("testdata/keys.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []*keyModel
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			keyModel
			keyChange
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Model != "" {
			out = append(out, &line.keyModel)
			continue
		}
		m := out[len(out)-1]
		m.Changes = append(m.Changes, line.keyChange)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%d models: %v", len(out), err)
	}
	return out
}

// open reads the model's folder and computes its unchanged results.
func (m *keyModel) open(t *testing.T) {
	t.Helper()
	dir := filepath.Join("testdata/families", m.Model)
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.family("")
	if err != nil {
		t.Fatal(err)
	}
	if m.set, err = s.OpenWeights(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.set.Close() })
	m.family, m.raw, m.want, m.stored = f.name, withoutInfinities(raw), readExpected(t, dir), storedTensors(m.set)
	m.modules, m.computed = map[string]*ir.Module{}, map[string][]float64{}
	if m.text, err = m.lower(m.config(t)); err != nil {
		t.Fatal(err)
	}
	if m.base, err = m.results(m.text); err != nil {
		t.Fatal(err)
	}
}

// check returns what becomes of a change, and the error that refuses it or what is wrong.
func (m *keyModel) check(t *testing.T, c keyChange) (string, error) {
	t.Helper()
	config := m.config(t)
	c.apply(t, config)
	text, err := m.lower(config)
	if err != nil {
		return keyRefused, err
	}
	have, err := m.results(text)
	if errors.Is(err, errNoOutput) {
		return keyRefused, err
	}
	if err != nil {
		return keySilent, err
	}
	what, want := keyHonored, c.Want
	if want == nil {
		what, want = keyIgnored, m.base[:keyValues]
	}
	worst, largest := 0.0, have[keyValues]
	for i := range want {
		worst, largest = math.Max(worst, math.Abs(have[i]-want[i])), math.Max(largest, math.Abs(want[i]))
	}
	if limit := 1e-4 + 1e-4*largest; worst <= limit {
		return what, nil
	}
	if text == m.text {
		return keySilent, fmt.Errorf("changes nothing; it changes transformers' results by %.2e", worst)
	}
	if c.Want == nil {
		return keySilent, fmt.Errorf("changes the results by %.2e; it does not change those of transformers", worst)
	}
	return keySilent, fmt.Errorf("results differ by %.2e from those of transformers", worst)
}

func (m *keyModel) config(t *testing.T) map[string]any {
	t.Helper()
	var config map[string]any
	if err := json.Unmarshal(m.raw, &config); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Edits {
		c.apply(t, config)
	}
	return config
}

func (c keyChange) apply(t *testing.T, config map[string]any) {
	t.Helper()
	path := strings.Split(c.Key, ".")
	last := path[len(path)-1]
	for _, key := range path[:len(path)-1] {
		inner, ok := config[key].(map[string]any)
		if !ok {
			t.Fatalf("%s: config.json has no section %s any more; run tools/check/keys/keys.py", c, key)
		}
		config = inner
	}
	if c.Value == nil {
		delete(config, last)
		return
	}
	var v any
	if err := json.Unmarshal(c.Value, &v); err != nil {
		t.Fatal(err)
	}
	config[last] = v
}

// lower returns the text of the module of a config.json, and records the module.
func (m *keyModel) lower(config map[string]any) (string, error) {
	dir := filepath.Join("testdata/families", m.Model)
	s := &Spec{Version: Version, Name: m.Model, ModelDir: dir, ConfigFile: "config.json", File: filepath.Join(dir, "config.json"), Config: textConfig(config)}
	s.readSentence()
	if _, err := s.complete(nil, Options{Quant: "f32"}); err != nil {
		return "", err
	}
	resolved, err := Resolve(s, HeadersOf(m.set))
	if err != nil {
		return "", err
	}
	mod, err := Lower(resolved)
	if err != nil {
		return "", err
	}
	text := mod.String()
	if m.modules[text] == nil {
		m.modules[text], err = mod, ir.Verify(mod)
	}
	return text, err
}

// errNoOutput means that the module has other outputs: an encoder has no logits.
var errNoOutput = errors.New("not the outputs")

// keyValues is how many of the results are recorded.
const keyValues = 8

// results runs a module on the ids and returns values spread over its results, and the
// magnitude of the largest result.
func (m *keyModel) results(text string) ([]float64, error) {
	if out := m.computed[text]; out != nil {
		return out, nil
	}
	mod := m.modules[text]
	got, states, w := map[string][]float64{}, interp.NewStates(), interp.NewWeights(mod, m.stored)
	run := func(graph string, step *interp.Step) error {
		out, err := runGraph(mod, graph, step, w, states)
		maps.Copy(got, out)
		return err
	}
	if mod.Graph("encode") != nil {
		if err := run("encode", &interp.Step{IDs: m.want.IDs, Types: m.want.Types, OutRows: m.want.Wanted}); err != nil {
			return nil, err
		}
	}
	if ids := m.want.IDs; mod.Graph("decode") != nil {
		if m.want.DecoderIDs != nil {
			ids = m.want.DecoderIDs
		}
		step := &interp.Step{IDs: ids}
		for i := len(ids) - max(1, len(m.want.Logits)); i < len(ids); i++ {
			step.OutRows = append(step.OutRows, i)
		}
		if err := run("decode", step); err != nil {
			return nil, err
		}
	}
	var all []float64
	for _, r := range []struct {
		name string
		want [][]float64
	}{{"classes", m.want.Classes}, {"embedding", m.want.Embedding}, {"hidden", m.want.Hidden}, {"logits", m.want.Logits}, {"pooled", m.want.Pooled}} {
		n := 0
		for _, row := range r.want {
			n += len(row)
		}
		if len(got[r.name]) < n || r.name != "hidden" && n > 0 && len(got[r.name]) > n {
			return nil, fmt.Errorf("%s: %w: %d values, want %d", r.name, errNoOutput, len(got[r.name]), n)
		}
		all = append(all, got[r.name][len(got[r.name])-n:]...)
	}
	out := make([]float64, keyValues+1)
	for i := range keyValues {
		out[i] = all[i*(len(all)-1)/(keyValues-1)]
	}
	for _, x := range all {
		out[keyValues] = math.Max(out[keyValues], math.Abs(x))
	}
	m.computed[text] = out
	return out, nil
}
