package tokenizerfile

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var llama2cDir = flag.String("llama2c", "testdata/llama2c", "folder with folders that hold tokenizer.bin and expected.json")

// TestLlama2CConformance compares with the tokenizer that tokenizer.bin was made from.
func TestLlama2CConformance(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(*llama2cDir, "*", "tokenizer.bin"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no */tokenizer.bin under %s", *llama2cDir)
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := readExpected(t, dir)
			for _, size := range []int{0, want.Tokenizer.Size} {
				tok, err := FromLlama2C(data, size)
				if err != nil {
					t.Fatal(err)
				}
				checkCases(t, tok, want.Tokenizer.Cases)
			}
			if _, err := FromLlama2C(data, want.Tokenizer.Size+1); err == nil {
				t.Error("a vocabulary larger than the file: want an error")
			}
		})
	}
}
