package tokenizerfile

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

var conformanceDir = flag.String("conformance", "testdata/models", "folder with model folders that hold expected.json")

type expectedFile struct {
	Tokenizer struct {
		Size    int              `json:"size"`
		Special map[string]int32 `json:"special_tokens"`
		Cases   []expectedCase   `json:"cases"`
		Pair    struct {
			IDs   []int32 `json:"ids"`
			Types []int32 `json:"types"`
		} `json:"pair"`
	} `json:"tokenizer"`
}

type expectedCase struct {
	Text               string  `json:"text"`
	IDs                []int32 `json:"ids"`
	IDsPlain           []int32 `json:"ids_plain"`
	SlowIDs            []int32 `json:"slow_ids"`
	Decoded            string  `json:"decoded"`
	DecodedSkipSpecial string  `json:"decoded_skip_special"`
}

func readFolder(t *testing.T, dir string) Files {
	t.Helper()
	files := Files{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.IsDir() || info.Size() > 64<<20 {
			continue
		}
		switch filepath.Ext(e.Name()) {
		case ".json", ".txt", ".model", ".spm", ".jinja":
		default:
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = data
	}
	return files
}

func readExpected(t *testing.T, dir string) *expectedFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if os.IsNotExist(err) { // another file format of the model folder of that name
		data, err = os.ReadFile(filepath.Join(*conformanceDir, filepath.Base(dir), "expected.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var e expectedFile
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return &e
}

func checkCases(t *testing.T, tok *tokenizer.Tokenizer, cases []expectedCase) {
	t.Helper()
	for _, c := range cases {
		if got := tok.Encode(c.Text, true); !slices.Equal(got, c.IDs) {
			t.Errorf("Encode(%q, true) = %v, want %v", c.Text, got, c.IDs)
		}
		if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDsPlain) {
			t.Errorf("Encode(%q, false) = %v, want %v", c.Text, got, c.IDsPlain)
		}
		for n := 1; n <= len(c.IDsPlain)+1; n++ {
			want := c.IDsPlain[:min(n, len(c.IDsPlain))]
			if got, err := tok.EncodeWithin(c.Text, false, tokenizer.Limit{Tokens: n, Cut: true}); err != nil || !slices.Equal(got, want) {
				t.Errorf("EncodeWithin(%q) cut to %d = %v, %v, want %v", c.Text, n, got, err, want)
			}
			if _, err := tok.EncodeWithin(c.Text, false, tokenizer.Limit{Tokens: n}); errors.Is(err, tokenizer.ErrLong) != (n < len(c.IDsPlain)) {
				t.Errorf("EncodeWithin(%q) within %d of %d tokens: %v", c.Text, n, len(c.IDsPlain), err)
			}
		}
		if got := tok.Decode(c.IDs, false); got != c.Decoded {
			t.Errorf("Decode(%v, false) = %q, want %q", c.IDs, got, c.Decoded)
		}
		if got := tok.Decode(c.IDs, true); got != c.DecodedSkipSpecial {
			t.Errorf("Decode(%v, true) = %q, want %q", c.IDs, got, c.DecodedSkipSpecial)
		}
		s, text := tok.NewStream(true), ""
		for _, id := range c.IDs {
			text += s.Push(id)
		}
		if text += s.Flush(); text != c.DecodedSkipSpecial {
			t.Errorf("stream of %v = %q, want %q", c.IDs, text, c.DecodedSkipSpecial)
		}
	}
}

// TestConformance compares with the results of Hugging Face for model folders.
func TestConformance(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(*conformanceDir, "*", "expected.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no */expected.json under %s", *conformanceDir)
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			want := readExpected(t, dir)
			tok, err := Load(readFolder(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			if tok.Size() < want.Tokenizer.Size {
				t.Errorf("Size() = %d, want %d", tok.Size(), want.Tokenizer.Size)
			}
			for token, id := range want.Tokenizer.Special {
				if got, ok := tok.ID(token); !ok || got != id || !tok.IsSpecial(id) {
					t.Errorf("ID(%q) = %d, %v (special %v), want special %d", token, got, ok, tok.IsSpecial(got), id)
				}
			}
			checkCases(t, tok, want.Tokenizer.Cases)
			if pair := want.Tokenizer.Pair; pair.IDs != nil {
				ids, types, err := tok.EncodePair("Hello, world!", "12 dogs", tokenizer.PairLimit{})
				if err != nil || !slices.Equal(ids, pair.IDs) || (pair.Types != nil && !slices.Equal(types, pair.Types)) {
					t.Errorf("EncodePair = %v %v (%v), want %v %v", ids, types, err, pair.IDs, pair.Types)
				}
			}
			data, err := tok.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			again, err := tokenizer.Unmarshal(string(data))
			if err != nil {
				t.Fatal(err)
			}
			if again.Size() != tok.Size() || again.ChatTemplate() != tok.ChatTemplate() {
				t.Errorf("after Marshal and Unmarshal: size %d, want %d; template %q, want %q", again.Size(), tok.Size(), again.ChatTemplate(), tok.ChatTemplate())
			}
			checkCases(t, again, want.Tokenizer.Cases)
		})
	}
}

// TestExampleTokens checks that the tokenizer that docs/examples writes for a
// published model returns the ids of that model's own code.
func TestExampleTokens(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../models/testdata/published/annalog.json")
	if err != nil {
		t.Fatal(err)
	}
	var want expectedFile
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	tok, err := Load(readFolder(t, "../../docs/examples/annalog"))
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Tokenizer.Cases) == 0 {
		t.Fatal("no cases")
	}
	checkCases(t, tok, want.Tokenizer.Cases)
}
