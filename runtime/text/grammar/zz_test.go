package grammar

import "testing"

func BenchmarkURL(b *testing.B) {
	for b.Loop() {
		g, err := ParseSchema([]byte(`{"format":"uri","maxLength":2083,"minLength":1,"type":"string"}`))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(g.states)), "states")
	}
}
