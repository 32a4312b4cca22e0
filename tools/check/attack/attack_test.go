//go:build linux

package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTable: rows have names of their own, an ordinary load, and make what they
// send for a small and a large context.
func TestTable(t *testing.T) {
	var names []string
	for _, a := range attacks() {
		if slices.Contains(names, a.name) {
			t.Errorf("two attacks are called %s", a.name)
		}
		names = append(names, a.name)
		if a.sends == "" || a.workers == 0 || a.like.clients == 0 || a.do == nil {
			t.Errorf("%s: a field is missing", a.name)
		}
	}
	if len(names) < 120 {
		t.Errorf("%d attacks", len(names))
	}
	for _, in := range []info{{Context: 512, Vocab: 4096}, {Context: 8192, Vocab: 49152}} {
		for _, n := range []int{1, 128, 2500} {
			if got := in.scale(n); got < 1 || got > n || got > in.Context/2 {
				t.Errorf("%d tokens become %d in a context of %d", n, got, in.Context)
			}
		}
	}
}

// answering is a service that has one answer.
func answering(t *testing.T, status int, body string) *service {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(h.Close)
	return &service{addr: strings.TrimPrefix(h.URL, "http://")}
}

func TestLoad(t *testing.T) {
	s := answering(t, 400, `{"error":{"message":"n: expected a \"number\" below 3"}}`)
	l, end := run(s, 2, time.Millisecond, ask(fixed(completions, obj{"prompt": "a"})))
	for range 1000 {
		time.Sleep(5 * time.Millisecond)
		l.mu.Lock()
		n := l.count[400]
		l.mu.Unlock()
		if n > 3 {
			break
		}
	}
	end()
	if l.count[400] < 3 || l.says[400] != `n: expected a \"number\" below 3` {
		t.Errorf("%v %v", l.count, l.says)
	}
}

// TestJudge: each rule has a case that breaks it.
func TestJudge(t *testing.T) {
	o := options{p50: 2, p99: 5}
	fast, slow, late := []float64{10, 10, 10}, []float64{21, 21, 21}, []float64{10, 10, 51}
	for _, c := range []struct {
		want  string
		under phase
	}{
		{"", phase{seen: seen{Whole: fast}, peak: 99, most: 100, count: map[int]int{200: 1}}},
		{"median 2.1 times", phase{seen: seen{Whole: slow}}},
		{"p99 5.1 times", phase{seen: seen{Whole: late}}},
		{"101 MB", phase{seen: seen{Whole: fast}, peak: 101, most: 100}},
		{"500×1", phase{seen: seen{Whole: fast}, count: map[int]int{500: 1}}},
		{"without a sentence", phase{seen: seen{Whole: fast}, count: map[int]int{400: 1}}},
		{"/health", phase{seen: seen{Whole: fast}, health: 1001}},
		{"starved", phase{}},
		{"status 429", phase{seen: seen{Whole: fast, Failed: []string{"status 429"}}}},
	} {
		r := o.judge(&attack{name: "a"}, &phase{seen: seen{Whole: fast}}, &c.under)
		if got := strings.Join(r.Wrong, "; "); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, expected %q", got, c.want)
		}
	}
}

func TestCachedTokens(t *testing.T) {
	if n := cachedTokens([]byte(`{"usage":{"prompt_tokens_details":{"cached_tokens":64}}}`)); n != 64 {
		t.Error(n)
	}
}
