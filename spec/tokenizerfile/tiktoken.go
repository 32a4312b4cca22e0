package tokenizerfile

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Tokenizers of tiktoken, and Mistral's tekken, store the bytes of each token with its rank.
// Two adjacent tokens merge if the joined bytes are a token, the lowest rank first. A piece of
// text that is a token is not split.

// A rankedToken is a token's bytes. Its rank is its place in the list.
type rankedToken string

// loadTiktoken reads a file of lines "BASE64 RANK". The file has no pattern and no special
// tokens: the former depends on the tokenizer's class, the latter are in tokenizer_config.json.
func loadTiktoken(name string) func(f Files, c *hfConfig) (*tokenizer.Definition, error) {
	return func(f Files, c *hfConfig) (*tokenizer.Definition, error) {
		tokens, err := readRanks(f[name])
		if err != nil {
			return nil, err
		}
		pattern := llama3Pattern
		switch {
		case name == "qwen.tiktoken":
			pattern = qwen2Pattern
		case c.Class == "TikTokenTokenizer": // Moonshot's
			pattern = kimiPattern
		}
		d, err := rankedDefinition(tokens, 0, pattern)
		if err != nil {
			return nil, err
		}
		if name == "qwen.tiktoken" {
			qwenSpecial(d, int32(len(tokens)))
		}
		for _, t := range c.added {
			if int(t.ID) >= len(tokens) {
				d.Model.Vocab = append(d.Model.Vocab, tokenizer.Entry{Token: t.Content, ID: t.ID})
			}
		}
		return d, nil
	}
}

// qwenSpecial adds the special tokens of Qwen's first models (tokenization_qwen.py), whose
// configuration does not list them, and their normal form.
func qwenSpecial(d *tokenizer.Definition, first int32) {
	names := []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	for i := range 205 {
		names = append(names, fmt.Sprintf("<|extra_%d|>", i))
	}
	for i, n := range names {
		d.Added = append(d.Added, tokenizer.AddedToken{ID: first + int32(i), Content: n, Special: true})
	}
	d.Normalizer = &tokenizer.Component{Type: "NFC"}
	d.Config.Special = map[string]string{"eos": names[0]}
	d.Config.ExtraEOS = []int32{first + 2}
}

// isTiktoken reports whether a file has the lines of tiktoken.
func isTiktoken(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	token, rank, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	if _, err := base64.StdEncoding.DecodeString(string(token)); err != nil || !ok {
		return false
	}
	_, err := strconv.ParseUint(string(rank), 10, 31)
	return err == nil
}

func readRanks(data []byte) ([]rankedToken, error) {
	var out []rankedToken
	at := 0
	for line := range bytes.Lines(data) {
		at++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		token, rank, _ := bytes.Cut(line, []byte(" "))
		raw, err := base64.StdEncoding.DecodeString(string(token))
		n, err2 := strconv.ParseUint(string(rank), 10, 31)
		if err = errors.Join(err, err2); err != nil || len(raw) == 0 {
			return nil, fmt.Errorf("line %d: %.60q is not a token in base64 and its rank", at, line)
		}
		if n > uint64(len(data)) { // no file has so many lines
			return nil, fmt.Errorf("line %d: rank %d in a file of %d bytes", at, n, len(data))
		}
		for uint64(len(out)) <= n {
			out = append(out, "")
		}
		if out[n] != "" {
			return nil, fmt.Errorf("line %d: rank %d is given twice", at, n)
		}
		out[n] = rankedToken(raw)
	}
	return out, nil
}

// rankedDefinition returns a pipeline with the tokens, whose ids begin at first. The merges
// are those of transformers' TikTokenConverter: all divisions of a token into two, by rank.
func rankedDefinition(tokens []rankedToken, first int32, pattern string) (*tokenizer.Definition, error) {
	d := &tokenizer.Definition{
		PreTokenizer: ggufPre{steps: isolated(pattern)}.component(),
		Decoder:      &tokenizer.Component{Type: "ByteLevel"},
		Model:        tokenizer.Model{Type: "BPE", IgnoreMerges: true},
	}
	ranks := make(map[rankedToken]int32, len(tokens))
	for i, t := range tokens {
		if _, twice := ranks[t]; twice && t != "" {
			return nil, fmt.Errorf("token %q has two ranks, %d and %d", t, ranks[t], i)
		}
		if t != "" {
			ranks[t] = int32(i)
			d.Model.Vocab = append(d.Model.Vocab, tokenizer.Entry{Token: tokenizer.ByteAlphabet(string(t)), ID: first + int32(i)})
		}
	}
	for i, t := range tokens {
		if len(t) > maxMergedPiece {
			continue
		}
		from := len(d.Model.Merges)
		for at := 1; at < len(t); at++ {
			left, ok1 := ranks[t[:at]]
			right, ok2 := ranks[t[at:]]
			if ok1 && ok2 {
				d.Model.Merges = append(d.Model.Merges, tokenizer.Merge{Left: first + left, Right: first + right, Into: first + int32(i)})
			}
		}
		slices.SortFunc(d.Model.Merges[from:], func(a, b tokenizer.Merge) int {
			return cmp.Or(cmp.Compare(a.Left, b.Left), cmp.Compare(a.Right, b.Right))
		})
	}
	return d, nil
}

// tekkenSpecial are the first special tokens of tekken.json files that do not list them
// (mistral-common's Tekkenizer).
var tekkenSpecial = strings.Fields("<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] " +
	"[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]")

// maxTekkenSpecial is the maximum number of special tokens; published files have 1,000.
const maxTekkenSpecial = 1 << 16

// A tekkenFile is the contents of tekken.json.
type tekkenFile struct {
	Config struct {
		Pattern string `json:"pattern"`
		Size    int    `json:"default_vocab_size"`
		Special int    `json:"default_num_special_tokens"`
	} `json:"config"`
	Vocab []struct {
		Rank  int    `json:"rank"`
		Bytes []byte `json:"token_bytes"` // base64
	} `json:"vocab"`
	Special []struct {
		Rank int    `json:"rank"`
		Text string `json:"token_str"`
	} `json:"special_tokens"`
}

// specialNames returns the names of the first n tokens; "" for those that have none.
func (t *tekkenFile) specialNames(n int) ([]string, error) {
	names := make([]string, n)
	if len(t.Special) == 0 {
		copy(names, tekkenSpecial)
	}
	for _, s := range t.Special {
		if s.Rank < 0 || s.Rank >= n || names[s.Rank] != "" {
			return nil, fmt.Errorf("special_tokens: rank %d of %d, given once or more", s.Rank, n)
		}
		names[s.Rank] = s.Text
	}
	return names, nil
}

// loadTekken reads tekken.json. The special tokens have the first ids.
func loadTekken(f Files, _ *hfConfig) (*tokenizer.Definition, error) {
	var t tekkenFile
	if err := json.Unmarshal(f["tekken.json"], &t); err != nil {
		return nil, err
	}
	n := t.Config.Special
	if t.Config.Pattern == "" || n < len(t.Special) || n > maxTekkenSpecial || t.Config.Size < n {
		return nil, fmt.Errorf("config: %d special tokens of %d, and pattern %.20q; want both numbers and a pattern", n, t.Config.Size, t.Config.Pattern)
	}
	tokens := make([]rankedToken, min(len(t.Vocab), t.Config.Size-n))
	for i := range tokens {
		v := &t.Vocab[i]
		if v.Rank != i || len(v.Bytes) == 0 {
			return nil, fmt.Errorf("vocab[%d]: rank %d, %d bytes; want the tokens in the order of their ranks", i, v.Rank, len(v.Bytes))
		}
		tokens[i] = rankedToken(v.Bytes)
	}
	d, err := rankedDefinition(tokens, int32(n), t.Config.Pattern)
	if err != nil {
		return nil, err
	}
	names, err := t.specialNames(n)
	if err != nil {
		return nil, err
	}
	d.Config.Special = map[string]string{}
	for i, text := range names {
		id := int32(i)
		if text == "" {
			text = fmt.Sprintf("<SPECIAL_%d>", i)
		}
		d.Model.Vocab = append(d.Model.Vocab, tokenizer.Entry{Token: text, ID: id})
		d.Added = append(d.Added, tokenizer.AddedToken{ID: id, Content: text, Special: true})
		if role := map[string]string{"<unk>": "unk", "<s>": "bos", "</s>": "eos", "<pad>": "pad"}[text]; role != "" {
			d.Config.Special[role] = text
		}
		if text == "<s>" {
			d.PostProcessor = templateOf([]edgeToken{{text, id}}, nil)
		}
	}
	return d, nil
}
