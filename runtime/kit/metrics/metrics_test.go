package metrics_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

func TestExposition(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	plain := r.Counter("a_total", "Plain.", "")
	labeled := r.Counter("b_total", "By status.", "code")
	r.Func("gauge", "c", "A gauge.", func() float64 { return 2.5 })
	h := r.Histogram("d_seconds", "Times.", []float64{0.1, 1})
	plain.Add(3, "")
	labeled.Add(1, "404")
	labeled.Add(2, "2\"0\\0\n")
	for _, v := range []float64{0.1, 0.11, 5} {
		h.Observe(v)
	}
	var b strings.Builder
	if n, err := r.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatal(n, err)
	}
	want := `# HELP a_total Plain.
# TYPE a_total counter
a_total 3
# HELP b_total By status.
# TYPE b_total counter
b_total{code="2\"0\\0\n"} 2
b_total{code="404"} 1
# HELP c A gauge.
# TYPE c gauge
c 2.5
# HELP d_seconds Times.
# TYPE d_seconds histogram
d_seconds_bucket{le="0.1"} 1
d_seconds_bucket{le="1"} 2
d_seconds_bucket{le="+Inf"} 3
d_seconds_sum 5.21
d_seconds_count 3
`
	if b.String() != want {
		t.Errorf("got:\n%s", b.String())
	}
	if plain.Value("") != 3 || h.Count() != 3 {
		t.Error("values differ")
	}
}

func TestAlso(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	r.Also([]metrics.Alias{{"x:gauge", "c"}, {"x:b_total", "b_total"}, {"x:seconds", "d_seconds"}}, "model", `a"b`) // before the metrics are registered
	r.Func("gauge", "c", "A gauge.", func() float64 { return 2.5 })
	r.Counter("b_total", "By status.", "code").Add(1, "404")
	r.Histogram("d_seconds", "Times.", []float64{1}).Observe(0.5)
	var b strings.Builder
	r.WriteTo(&b)
	want := `# HELP x:gauge A gauge.
# TYPE x:gauge gauge
x:gauge{model="a\"b"} 2.5
# HELP x:b_total By status.
# TYPE x:b_total counter
x:b_total{code="404",model="a\"b"} 1
# HELP x:seconds Times.
# TYPE x:seconds histogram
x:seconds_bucket{le="1",model="a\"b"} 1
x:seconds_bucket{le="+Inf",model="a\"b"} 1
x:seconds_sum{model="a\"b"} 0.5
x:seconds_count{model="a\"b"} 1
`
	if own, also, ok := strings.Cut(b.String(), "d_seconds_count 1\n"); !ok || also != want || !strings.Contains(own, "\nc 2.5\n") {
		t.Errorf("got:\n%s", b.String())
	}
}
