package tokenizer

import (
	"math/rand/v2"
	"testing"
)

// TestStreamCleanUp compares the streamed cleanup of random fragments with the cleanup
// of the whole text.
func TestStreamCleanUp(t *testing.T) {
	t.Parallel()
	scraps := []string{" ", "'", "n", "t", " n", "'t", " '", " ' ", ".", " .", "m", "s", "re", " ve", "  ", "ab", "'s", " ,", "?", "!"}
	tok := &Tokenizer{vocab: vocabularyOf(scraps), added: &addedVocabulary{}, config: Config{CleanUp: true}}
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
