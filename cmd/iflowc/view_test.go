package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/passes"
)

// viewedDemo returns the data of the demo model's report, and the report.
func viewedDemo(t *testing.T, args ...string) (*viewData, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.html")
	iflowc(t, append([]string{"view", demoSpec, "--quant", "f32", "-o", out}, args...)...).succeed(t)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `id="data">`)
	data, _, found := strings.Cut(rest, "</script>")
	d := &viewData{}
	if err := json.Unmarshal([]byte(data), d); !found || err != nil {
		t.Fatalf("the page's data: %v", err)
	}
	return d, string(text)
}

// TestView checks that the report is one file, and that every op of the last stage
// leads to the region that computes it.
func TestView(t *testing.T) {
	t.Parallel()
	d, page := viewedDemo(t)
	if strings.Contains(page, "{{") || strings.Contains(page, "http://") && !strings.Contains(page, "www.w3.org") {
		t.Error("the page has an empty place, or needs another file")
	}
	if len(d.Stages) < 5 || d.Stages[0].Name != "lower" || !strings.Contains(d.Stages[len(d.Stages)-1].IR, "!slot") {
		t.Errorf("%d stages", len(d.Stages))
	}
	lines := strings.Split(d.Stages[len(d.Stages)-1].IR, "\n")
	seen := make([]bool, len(d.Regions))
	var walk func(list []viewOp)
	walk = func(list []viewOp) {
		for _, op := range list {
			if !strings.Contains(lines[op.Line-1], op.Op) {
				t.Errorf("%s %v: line %d is %q", op.Op, op.Results, op.Line, lines[op.Line-1])
			}
			if op.Op == "repeat" {
				walk(op.Body)
				continue
			}
			if op.Region < 0 || op.Region >= len(d.Regions) {
				t.Errorf("%s %v has no region", op.Op, op.Results)
				continue
			}
			r := d.Regions[op.Region]
			seen[op.Region] = true
			for _, p := range r.Products {
				if !slices.Contains(op.Args, "@"+p.Weight) {
					t.Errorf("%s %v leads to region %s, which reads %s", op.Op, op.Results, r.Function, p.Weight)
				}
			}
			if !strings.HasPrefix(r.Function, "r") || !strings.Contains(r.Source, r.Function+"(ifl_ctx") || !strings.HasSuffix(r.Source, "\n}\n") {
				t.Errorf("region %d has source %.60q", op.Region, r.Source)
			}
		}
	}
	for _, g := range d.Graphs {
		walk(g.Ops)
	}
	if i := slices.Index(seen, false); i >= 0 {
		t.Errorf("no op leads to region %s", d.Regions[i].Function)
	}
	for _, s := range d.Slots {
		for i, life := range s.Lives {
			if life.To < life.From || life.To >= len(d.Regions) || i > 0 && life.From < s.Lives[i-1].From {
				t.Errorf("slot %d holds %s from region %d to %d of %d", s.Slot, life.Value, life.From, life.To, len(d.Regions))
			}
		}
	}
	for _, matmul := range d.Matmuls {
		for _, f := range matmul.Symbols {
			if !slices.ContainsFunc(d.Kernels, func(k viewKernel) bool { return k.Symbol == f && strings.Contains(k.Source, f) }) {
				t.Errorf("matmul %s: no source of kernel %s", matmul.Name, f)
			}
		}
	}
}

// TestViewTrace checks that the regions of a trace are found in the model, and that
// the error for another file has the name of the file.
func TestViewTrace(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace.json")
	call(t, nil, demo(t), "generate", "-p", "Once upon", "-n", "4", "--trace", trace).succeed(t)
	d, _ := viewedDemo(t, "--trace", trace)
	if d.Trace == nil || d.Trace.Steps < 4 || len(d.Trace.Rows) != len(d.Regions) {
		t.Fatalf("%+v, of %d regions", d.Trace, len(d.Regions))
	}
	sum := 0.0
	for _, r := range d.Trace.Rows {
		sum += r.BusyUS + r.WaitUS
	}
	if sum < d.Trace.US/4 || sum > d.Trace.US*1.01 {
		t.Errorf("regions took %.0f µs of %.0f", sum, d.Trace.US)
	}
	for name, text := range map[string]string{"empty": "", "other": `{"a":1}`, "none": `{"traceEvents":[]}`, "list": `{"traceEvents":{}}`} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		wantError(t, iflowc(t, "view", demoSpec, "--trace", file, "-o", file+".html"), 2, file)
	}
}

// TestViewPartition checks the ranks, the communication and the program of one rank
// for a model on four devices.
func TestViewPartition(t *testing.T) {
	t.Parallel()
	whole, _ := viewedDemo(t)
	d, _ := viewedDemo(t, "--devices", "0&1;2&3", "--rank", "3")
	if len(d.Ranks) != 4 || d.Rank != 3 {
		t.Fatalf("%d ranks, %d shown", len(d.Ranks), d.Rank)
	}
	var names []string
	for _, s := range d.Stages {
		names = append(names, s.Name)
	}
	after := passes.Names()[1:] // partition comes before project
	if want := append([]string{"lower", "partition", "project"}, after...); !slices.Equal(names, want) {
		t.Errorf("stages %v, expected %v", names, want)
	}
	if !strings.Contains(d.Stages[1].IR, "par 2") || strings.Contains(d.Stages[2].IR, "par 2") || !strings.Contains(d.Stages[2].IR, "recv") {
		t.Errorf("the cut is not shown:\n%s", d.Stages[2].IR)
	}
	layers, tokens := 0, int64(0)
	for i, r := range d.Ranks {
		if r.Stage != i/2 || r.TPRank != i%2 || r.TPSize != 2 || r.Bytes <= 0 || len(r.Shards) == 0 || len(r.Traffic) == 0 || r.Traffic[0].Exchanges == 0 {
			t.Errorf("rank %d: %+v", i, r)
		}
		if sent := r.Traffic[0].Sends; (sent > 0) != (r.Stage == 0) {
			t.Errorf("rank %d sends %d times", i, sent)
		}
		if r.TPRank == 0 {
			layers += r.Hi - r.Lo
		}
		tokens += r.State
	}
	var state int64
	for _, s := range whole.States {
		state += s.Bytes
	}
	if layers != 7 || tokens != state {
		t.Errorf("%d layers, %d bytes a token held; on one device 7 and %d", layers, tokens, state)
	}
	wantError(t, iflowc(t, "view", demoSpec, "--rank", "1", "-o", "x.html"), exitUsage, "--rank 1", "--devices")
	wantError(t, iflowc(t, "view", demoSpec, "--devices", "0;1", "--rank", "2", "-o", "x.html"), exitUsage, "--rank 2", "0 to 1")
}

// TestViewHost checks that the page is served under the names of this machine only.
func TestViewHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]int{"localhost:1": 200, "127.0.0.1:1": 200, "example.org": 403, "": 403} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Host = host
		if viewHandler([]byte("page")).ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: status %d, want %d", host, w.Code, want)
		}
	}
}
