package speculate_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// longest finds prompt lookup's match by exhaustive search: the longest match of at
// most 32 tokens, the latest among equals.
func longest(history []int32) (at, length int) {
	end := len(history) - 1
	for i := range end {
		n := 0
		for n < 32 && n <= i && history[i-n] == history[end-n] {
			n++
		}
		if n > 0 && n >= length {
			at, length = i, n
		}
	}
	return at, length
}

// few reports whether the last two tokens have no more occurrences than lookup
// compares.
func few(history []int32) bool {
	places, end := 0, len(history)-1
	for i := 1; i < end; i++ {
		if history[i] == history[end] && history[i-1] == history[end-1] {
			places++
		}
	}
	return places <= 16
}

// TestLookup compares drafts with an exhaustive search, on growing texts with few
// different tokens.
func TestLookup(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := speculate.NewLookup()
		kinds := []int32{3, 40, 5000}[seed%3]
		history := []int32{1}
		for len(history) < 300 {
			d := l.Propose(history, speculate.Room{Nodes: 100})
			at, length := longest(history)
			if want := history[at+1:][:min(32, len(history)-1-at)]; length == 0 && d.Len() > 0 || length > 0 && few(history) && !slices.Equal(d.Tokens, want) {
				t.Fatalf("seed %d, %d tokens: %v, expected %v, which followed a match of %d", seed, len(history), d.Tokens, want, length)
			}
			n := 1 + r.IntN(3)
			var more []int32
			from := r.IntN(len(history))
			for i := range n {
				token := r.Int32N(kinds)
				if from > 0 && from+i < len(history) {
					token = history[from+i]
				}
				more = append(more, token)
			}
			l.Observe(more)
			history = append(history, more...)
		}
	}
}

// TestLookupLearns checks that drafts grow to the full length on a repetitive text, and
// that they stop, at no cost, on one without repetition.
func TestLookupLearns(t *testing.T) {
	t.Parallel()
	room := speculate.Room{Nodes: 15, Time: func(n int) float64 { return 1 + 0.1*float64(n) }}
	r := rand.New(rand.NewPCG(1, 1))
	page := make([]int32, 400)
	for i := range page {
		page[i] = r.Int32N(1000)
	}
	l := speculate.NewLookup()
	history := append(slices.Clone(page), page[:4]...)
	steps := 0
	for len(history) < 590 {
		d := l.Propose(history, room)
		more := page[len(history)-400:][:d.Len()+1]
		if !slices.Equal(d.Tokens, more[:min(d.Len(), len(more))]) {
			t.Fatalf("%v, expected %v", d.Tokens, more)
		}
		l.Observe(more)
		history = append(history, more...)
		steps++
	}
	if steps > 186/8 {
		t.Errorf("%d steps for %d repeated tokens", steps, 186)
	}

	l = speculate.NewLookup()
	history = []int32{0}
	wrong := 0
	for range 2000 { // pairs repeat, but with different continuations
		wrong += l.Propose(history, room).Len()
		more := []int32{r.Int32N(30)}
		l.Observe(more)
		history = append(history, more...)
	}
	if wrong > 100 {
		t.Errorf("%d tokens were drafted for a text of noise", wrong)
	}
}

// TestLength compares the length of a draft with its definition.
func TestLength(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		p := make([]float64, 12)
		for i := range p {
			p[i] = r.Float64()
		}
		slope, others, each := r.Float64()/3, float64(r.IntN(3)), r.Float64()/10
		room := speculate.Room{Nodes: r.IntN(13), Others: others, Time: func(n int) float64 { return 1 + slope*float64(n) }}
		best, want := 1.03*(others+1), 0
		for n := 1; n <= room.Nodes; n++ {
			expected := others + 1
			for k := 1; k <= n; k++ {
				product := 1.0
				for _, q := range p[:k] {
					product *= q
				}
				expected += product
			}
			if rate := expected / (1 + slope*float64(n) + each*float64(n)); rate > best {
				best, want = rate, n
			}
		}
		if got := room.Length(func(i int) float64 { return p[i] }, len(p), each); got != want {
			t.Fatalf("%d, expected %d", got, want)
		}
	}
}

// TestWithSource checks that a drafter finds continuations in a source that shares no
// tokens with the sequence.
func TestWithSource(t *testing.T) {
	t.Parallel()
	source := []int32{7, 20, 21, 22, 23, 8}
	d := speculate.WithSource(source, speculate.NewLookup())
	room := speculate.Room{Nodes: 3}
	for _, c := range []struct{ history, want []int32 }{{[]int32{1}, nil}, {[]int32{1, 20, 21}, []int32{22, 23, 8}}, {[]int32{1, 20, 21, 5}, nil}} {
		if got := d.Propose(c.history, room).Tokens; !slices.Equal(got, c.want) {
			t.Errorf("behind %v: %v, want %v", c.history, got, c.want)
		}
		d.Observe([]int32{20})
	}
}
