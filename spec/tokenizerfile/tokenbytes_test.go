package tokenizerfile

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestBytes checks that the bytes of single tokens concatenate to the decoded text,
// except that some decoders drop the space of the first token. Vocabularies without
// byte fallback also normalize spaces, so their spaces are not compared.
func TestBytes(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(*conformanceDir, "*", "expected.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no */expected.json under %s", *conformanceDir)
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			tok, err := Load(readFolder(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"Hello, wörld {\"a\": [1, 2]}\n", "naïve 😀 東京 x"} {
				ids := tok.Encode(text, false)
				var joined []byte
				for _, id := range ids {
					joined = append(joined, tok.Bytes(id)...)
				}
				got, want := string(joined), tok.Decode(ids, true)
				if !strings.Contains(want, "😀") { // no byte fallback, so spaces are not exact
					got, want = strings.ReplaceAll(got, " ", ""), strings.ReplaceAll(want, " ", "")
				}
				if strings.TrimPrefix(got, " ") != strings.TrimPrefix(want, " ") {
					t.Errorf("bytes of %v: %q, want %q", ids, got, want)
				}
			}
			for id := range int32(tok.Size()) {
				if b := tok.Bytes(id); b != nil && tok.IsSpecial(id) {
					t.Errorf("special token %d has bytes %q", id, b)
				}
			}
		})
	}
	t.Run("outside", func(t *testing.T) {
		tok, err := Load(readFolder(t, filepath.Dir(found[0])))
		if err != nil {
			t.Fatal(err)
		}
		if b := tok.Bytes(1 << 30); b != nil {
			t.Errorf("an unknown id has bytes %q", b)
		}
	})
}
