package tokenizerfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Files holds the tokenizer files of a model folder by base name, such as
// tokenizer.json, tokenizer_config.json, tokenizer.model or vocab.txt.
type Files map[string][]byte

// A source reads a definition from certain files.
type source struct {
	needs []string
	read  func(f Files, c *hfConfig) (*tokenizer.Definition, error)
}

// sources are in order of preference. tokenizer.json is complete; the others depend
// on conventions of the programs that write them.
var sources = []source{
	{[]string{"tokenizer.json"}, loadHF},
	{[]string{"sentencepiece.bpe.model", "vocab.json"}, loadM2M100},
	{[]string{"source.spm", "vocab.json"}, loadMarian},
	{[]string{"tokenizer.model"}, pieces("tokenizer.model")},
	{[]string{"spiece.model"}, spLoader("spiece.model")},
	{[]string{"sentencepiece.bpe.model"}, spLoader("sentencepiece.bpe.model")},
	{[]string{"sentencepiece.model"}, spLoader("sentencepiece.model")},
	{[]string{"vocab.json", "merges.txt"}, loadVocabMerges},
	{[]string{"vocab.txt"}, loadWordPiece},
	{[]string{"tekken.json"}, loadTekken},
	{[]string{"tiktoken.model"}, loadTiktoken("tiktoken.model")},
	{[]string{"qwen.tiktoken"}, loadTiktoken("qwen.tiktoken")},
}

// pieces reads a file of SentencePiece, or one of tiktoken under the same name.
func pieces(name string) func(f Files, c *hfConfig) (*tokenizer.Definition, error) {
	return func(f Files, c *hfConfig) (*tokenizer.Definition, error) {
		if isTiktoken(f[name]) {
			return loadTiktoken(name)(f, c)
		}
		return spLoader(name)(f, c)
	}
}

// Load returns the tokenizer of a model folder, read from the most complete source
// among files. It ignores files that do not belong to tokenizers.
func Load(files Files) (*tokenizer.Tokenizer, error) {
	c, err := readConfig(files)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if !files.have(s.needs) {
			continue
		}
		d, err := s.read(files, c)
		if err != nil {
			return nil, wrap(s.needs[0], err)
		}
		c.fill(d)
		setInfill(d, tokenizer.InfillFormat{})
		t, err := tokenizer.New(d)
		if err != nil {
			return nil, wrap(s.needs[0], err)
		}
		return t, nil
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("no tokenizer file in [%s]; expected tokenizer.json, tokenizer.model, spiece.model, sentencepiece.bpe.model, vocab.json with merges.txt, vocab.txt, tekken.json, tiktoken.model, qwen.tiktoken or tokenizer.bin", strings.Join(names, " "))
}

func (f Files) have(names []string) bool {
	for _, name := range names {
		if len(f[name]) == 0 {
			return false
		}
	}
	return true
}

func loadHF(f Files, c *hfConfig) (*tokenizer.Definition, error) {
	d, err := parseHF(f["tokenizer.json"])
	if err != nil {
		return nil, err
	}
	c.adjust(d)
	return d, nil
}

// wrap adds the name of the source to an error.
func wrap(source string, err error) error { return fmt.Errorf("%s: %w", source, err) }

func orTrue(b *bool) bool { return b == nil || *b }

func isTrue(b *bool) bool { return b != nil && *b }

func ptr[T any](v T) *T { return &v }
