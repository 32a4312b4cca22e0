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
