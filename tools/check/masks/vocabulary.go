package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"github.com/iflowc/iflowc/spec/tokenizerfile"
)

// A vocabulary is the bytes of all tokens and the token that ends a text, which has no
// bytes.
type vocabulary struct {
	words [][]byte
	eos   int32
}

// readVocabulary reads a .tiktoken file, a .gguf file, a tokenizer.json, or the
// tokenizer of a model folder.
func readVocabulary(path string) (*vocabulary, error) {
	if strings.HasSuffix(path, ".tiktoken") {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return readTiktoken(path, data)
	}
	t, err := readTokenizer(path)
	if err != nil {
		return nil, err
	}
	eos, ok := t.EOS()
	if !ok || int(eos) >= t.Size() {
		return nil, fmt.Errorf("%s: the tokenizer names no token that ends a text; use another tokenizer", path)
	}
	v := &vocabulary{eos: eos}
	for id := range int32(t.Size()) {
		v.words = append(v.words, t.Bytes(id))
	}
	return v, nil
}

func readTokenizer(path string) (*tokenizer.Tokenizer, error) {
	if strings.HasSuffix(path, ".gguf") {
		set, err := checkpoint.Open(path)
		if err != nil {
			return nil, err
		}
		defer set.Close()
		return tokenizerfile.FromGGUF(set.Meta())
	}
	dir, names := filepath.Split(path)
	list := []string{names}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		dir, list = path, nil
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".json") || strings.HasSuffix(e.Name(), ".txt") {
				list = append(list, e.Name())
			}
		}
	}
	files := tokenizerfile.Files{}
	for _, name := range list {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return tokenizerfile.Load(files)
}

// readTiktoken reads lines of a token in base64 and its id, in the order of the ids. The
// token that ends a text is the last one if that has no bytes, else readTiktoken appends it.
func readTiktoken(path string, data []byte) (*vocabulary, error) {
	v := &vocabulary{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		text, id, _ := strings.Cut(lines.Text(), " ")
		word, err := base64.StdEncoding.DecodeString(text)
		if err != nil || id != fmt.Sprint(len(v.words)) {
			return nil, fmt.Errorf("%s:%d: expected a token in base64 and the id %d", path, len(v.words)+1, len(v.words))
		}
		v.words = append(v.words, word)
	}
	if n := len(v.words); n == 0 || len(v.words[n-1]) > 0 {
		v.words = append(v.words, nil)
	}
	v.eos = int32(len(v.words) - 1)
	return v, lines.Err()
}

// save writes a .tiktoken file.
func (v *vocabulary) save(path string) error {
	var out bytes.Buffer
	for id, word := range v.words {
		fmt.Fprintf(&out, "%s %d\n", base64.StdEncoding.EncodeToString(word), id)
	}
	return os.WriteFile(path, out.Bytes(), 0o666)
}
