package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestStreamCleanUp feeds random scraps that the tidying of blanks joins in all
// ways, and compares with tidying the whole.
func TestStreamCleanUp(t *testing.T) {
	t.Parallel()
	scraps := []string{" ", "'", "n", "t", " n", "'t", " '", " ' ", ".", " .", "m", "s", "re", " ve", "  ", "ab", "'s", " ,", "?", "!"}
	tok := &Tokenizer{vocab: vocabularyOf(scraps), added: &addedVocabulary{}, config: config{CleanUp: true}}
	tok.decoder = []stageMaker{func() decodeStage { return &fuseStage{} }}
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		stream, got, whole := tok.NewStream(false), "", ""
		for range r.IntN(12) {
			id := r.Int32N(int32(len(scraps)))
			got += stream.Push(id)
			whole += scraps[id]
		}
		got += stream.Flush()
		if want := spaceCleanup.apply(whole); got != want {
			t.Fatalf("%q streams as %q, want %q", whole, got, want)
		}
	}
}

// TestStreamHoldsBytes checks when text comes out.
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

// TestConcurrentUse shares one tokenizer, and so its word cache.
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
