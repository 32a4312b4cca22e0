package tokenizerfile

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestStreamHoldsBytes checks when a stream returns text.
func TestStreamHoldsBytes(t *testing.T) {
	t.Parallel()
	tok := loadTestdata(t, "byte-level")
	ids := tok.Encode("天 ok", false)
	s := tok.NewStream(true)
	var parts []string
	for _, id := range ids {
		if part := s.Push(id); part != "" {
			parts = append(parts, part)
		}
	}
	if rest := s.Flush(); rest != "" || strings.Join(parts, "") != "天 ok" || parts[0] != "天" {
		t.Errorf("parts %q and %q, want 天 as the first part and nothing left", parts, rest)
	}
}

// TestConcurrentUse shares one tokenizer and its word cache between goroutines.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	tok := loadTestdata(t, "byte-level")
	text := "the quick brown fox jumps over the lazy dog"
	want := loadTestdata(t, "byte-level").Encode(text, true)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got := tok.Encode(text, true); !slices.Equal(got, want) {
					t.Errorf("Encode = %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}
