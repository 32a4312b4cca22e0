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

// beside are files that add to a source. spm.model is not read alone: an error says so.
var beside = []string{
	"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "target.spm", "target_vocab.json", "spm.model", "chat_template.jinja", "config.json",
}

// Names returns the names of the files in a model's folder that tokenizers are read from.
func Names() []string {
	names := slices.Clone(beside)
	for _, s := range sources {
		names = append(names, s.needs...)
	}
	slices.Sort(names)
	return slices.Compact(names)
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
	want := ""
	for _, s := range sources {
		want += strings.Join(s.needs, " with ") + ", "
	}
	return nil, fmt.Errorf("no tokenizer file in [%s]; expected %sor tokenizer.bin", strings.Join(names, " "), want)
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
