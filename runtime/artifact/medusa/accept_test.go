package medusa

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestTypicalReference compares with the reference's evaluate_posterior, computed in
// float64.
func TestTypicalReference(t *testing.T) {
	raw, err := os.ReadFile("testdata/acceptance.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Choices Choices
		Cases   []struct {
			Temperature, Threshold, Alpha float64
			Tokens                        []int32
			Logits                        [][]float32
			Path                          []int
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(file.Choices)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, c := range file.Cases {
		if c.Temperature == 0 {
			continue // greedy
		}
		compared++
		r := Typical{Threshold: c.Threshold, Alpha: c.Alpha, Temperature: c.Temperature}
		got := r.Walk(p.Parent, c.Tokens[1:], func(node int) []float32 { return c.Logits[node+1] })
		want := []int{}
		for _, at := range c.Path[1:] {
			want = append(want, at-1)
		}
		if !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("case %d: %v, the reference accepts %v", i, got, want)
		}
	}
	if compared < 4 {
		t.Errorf("%d cases", compared)
	}
}

// TestTypicalPaths compares with a check of every path.
func TestTypicalPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c Choices // the best 3, 2 and 2 candidates of three heads
	for i := range 3 {
		c = append(c, []int{i})
		for j := range 2 {
			c = append(c, []int{i, j}, []int{i, j, 0}, []int{i, j, 1})
		}
	}
	p, err := NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	nodes := Sorted(c)
	longest := map[int]int{}
	for range 300 {
		logits := make([][]float32, len(nodes)+1)
		for i := range logits {
			for range 8 {
				logits[i] = append(logits[i], float32(rng.NormFloat64()*2))
			}
		}
		tokens := make([]int32, len(nodes))
		for i, path := range nodes {
			tokens[i] = int32((path[len(path)-1]*3 + len(path)) % 8)
		}
		r := Typical{Threshold: DefaultThreshold, Alpha: DefaultAlpha, Temperature: 0.8}
		got := r.Walk(p.Parent, tokens, func(node int) []float32 { return logits[node+1] })
		var best []int
		likelihood := math.Inf(-1)
		for i := range nodes {
			path, sum, ok := alone(p, i, tokens, logits)
			if ok && (len(path) > len(best) || len(path) == len(best) && sum > likelihood) {
				best, likelihood = path, sum
			}
		}
		if !slices.Equal(got, best) {
			t.Fatalf("%v, one by one %v", got, best)
		}
		longest[len(got)]++
	}
	if len(longest) < 4 {
		t.Errorf("only lengths %v occurred", longest)
	}
}

// alone checks the path to one node by the rule's formula.
func alone(p *Plan, node int, tokens []int32, logits [][]float32) (path []int, likelihood float64, ok bool) {
	for at := int32(node); at >= 0; at = p.Parent[at] {
		path = append(path, int(at))
	}
	slices.Reverse(path)
	from := 0
	for _, at := range path {
		sum, entropy := 0.0, 0.0
		for _, l := range logits[from] {
			sum += math.Exp(float64(l) / 0.8)
		}
		for _, l := range logits[from] {
			q := math.Exp(float64(l)/0.8) / sum
			entropy -= q * math.Log(q+1e-5)
		}
		q := math.Exp(float64(logits[from][tokens[at]])/0.8) / sum
		if !(q > math.Min(0.09, 0.3*math.Exp(-entropy))) {
			return nil, 0, false
		}
		likelihood += math.Log(q)
		from = at + 1
	}
	return path, likelihood, true
}
