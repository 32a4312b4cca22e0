package ir

import (
	"strings"
	"testing"
)

// TestErrorList checks that a long list is truncated and states the number of omitted errors.
func TestErrorList(t *testing.T) {
	t.Parallel()
	var l errorList
	if l.err() != nil {
		t.Error("an empty list is an error")
	}
	for i := range 25 {
		l.addf(Pos{"a.ir", i + 1, 1}, "wrong")
		want := min(i+1, maxComplaints)
		if i >= maxComplaints {
			want++
		}
		if got := strings.Count(l.err().Error(), "\n") + 1; got != want {
			t.Fatalf("%d complaints: %d lines", i+1, got)
		}
	}
	if text := l.err().Error(); !strings.HasPrefix(text, "a.ir:1:1: wrong\n") || !strings.HasSuffix(text, "and 15 more") {
		t.Error(text)
	}
}
