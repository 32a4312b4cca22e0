package tokenizerfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// loadM2M100 reads vocab.json with sentencepiece.bpe.model. The ids of pieces are
// those of vocab.json; the language tokens follow.
func loadM2M100(f Files, c *hfConfig) (*tokenizer.Definition, error) {
	d, _, err := spOverVocab(f, "sentencepiece.bpe.model", "vocab.json")
	if err != nil {
		return nil, err
	}
	unk := "<unk>"
	if t, ok := c.special["unk"]; ok {
		unk = t.Content
	}
	d.Model.UnkToken = &unk
	next := int32(len(d.Model.Vocab))
	codes, ok := languageCodes[c.LanguageCodes]
	if !ok {
		codes = languageCodes["m2m100"]
	}
	ids := vocabMap(d.Model.Vocab)
	for _, code := range codes {
		token := "__" + code + "__"
		if _, known := ids[token]; !known {
			d.Model.Vocab = append(d.Model.Vocab, tokenizer.Entry{Token: token, ID: next})
			ids[token] = next
		}
		next++
	}
	var before, after []edgeToken
	source := "en"
	if c.SrcLang != "" {
		source = c.SrcLang
	}
	if id, ok := ids["__"+source+"__"]; ok {
		before = []edgeToken{{"__" + source + "__", id}}
	}
	if eos, ok := c.special["eos"]; ok {
		if id, ok := ids[eos.Content]; ok {
			after = []edgeToken{{eos.Content, id}}
		}
	}
	d.PostProcessor = templateOf(before, after)
	return d, nil
}

// loadMarian reads vocab.json with source.spm and target.spm. The source model
// encodes and the target model decodes. If the two sides have separate
// vocabularies, decoding uses target_vocab.json.
func loadMarian(f Files, c *hfConfig) (*tokenizer.Definition, error) {
	d, _, err := spOverVocab(f, "source.spm", "vocab.json")
	if err != nil {
		return nil, err
	}
	d.Model.SentencePiece.LanguageCodes = true
	d.Model.SentencePiece.SpaceAfterSpecial = true
	unk := "<unk>"
	if t, ok := c.special["unk"]; ok {
		unk = t.Content
	}
	d.Model.UnkToken = &unk
	if data := f["target.spm"]; len(data) > 0 {
		target, err := parseSentencePiece(data)
		if err != nil {
			return nil, wrap("target.spm", err)
		}
		for _, p := range target.Pieces {
			d.Model.SentencePiece.Target = append(d.Model.SentencePiece.Target, p.Text)
		}
	}
	if data := f["target_vocab.json"]; c.SeparateVocab && len(data) > 0 {
		if err := json.Unmarshal(data, &d.Model.SentencePiece.TargetVocab); err != nil {
			return nil, wrap("target_vocab.json", err)
		}
	}
	if eos, ok := c.special["eos"]; ok {
		if id, ok := vocabMap(d.Model.Vocab)[eos.Content]; ok {
			d.PostProcessor = templateOf(nil, []edgeToken{{eos.Content, id}})
		}
	}
	return d, nil
}

// spOverVocab combines a SentencePiece model with a separate vocabulary.
func spOverVocab(f Files, model, vocab string) (*tokenizer.Definition, *spModel, error) {
	sp, err := parseSentencePiece(f[model])
	if err != nil {
		return nil, nil, wrap(model, err)
	}
	ids := map[string]int32{}
	if err := json.Unmarshal(f[vocab], &ids); err != nil {
		return nil, nil, wrap(vocab, err)
	}
	d := &tokenizer.Definition{
		Decoder: &tokenizer.Component{Type: "SentencePiece"},
		Model:   tokenizer.Model{Type: "SentencePiece", Vocab: tokenizer.SortedVocab(ids)},
	}
	sp.define(&d.Model)
	return d, sp, nil
}

// define sets the part of a model that encodes as the library does.
func (m *spModel) define(out *tokenizer.Model) {
	def := &tokenizer.SentencePiece{
		BPE: m.Type == spBPE, Charsmap: m.Charsmap, DummyPrefix: m.DummyPrefix,
		RemoveSpaces: m.RemoveSpaces, ByteFallback: m.ByteFallback, UnkSurface: m.UnkSurface,
		Types: map[int32]int{},
	}
	var normal []tokenizer.Entry
	var scores []float64
	for i, p := range m.Pieces {
		e := tokenizer.Entry{Token: p.Text, ID: int32(i)}
		out.Inner = append(out.Inner, e)
		out.Scores = append(out.Scores, float64(p.Score))
		if p.Type != tokenizer.PieceNormal {
			def.Types[e.ID] = p.Type
			continue
		}
		normal = append(normal, e)
		scores = append(scores, float64(p.Score))
	}
	if def.BPE {
		out.Merges = mergesFromScores(normal, scores)
	}
	out.SentencePiece = def
}

func vocabMap(vocab []tokenizer.Entry) map[string]int32 {
	ids := make(map[string]int32, len(vocab))
	for _, e := range vocab {
		ids[e.Token] = e.ID
	}
	return ids
}

// loadVocabMerges reads vocab.json with merges.txt: byte-level BPE of GPT-2, OPT
// and RoBERTa.
func loadVocabMerges(f Files, c *hfConfig) (*tokenizer.Definition, error) {
	vocab := map[string]int32{}
	if err := json.Unmarshal(f["vocab.json"], &vocab); err != nil {
		return nil, err
	}
	var lines []string
	for i, line := range strings.Split(string(f["merges.txt"]), "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" || (i == 0 && strings.HasPrefix(line, "#version")) {
			continue
		}
		lines = append(lines, line)
	}
	pairs, err := splitMerges(lines)
	if err != nil {
		return nil, wrap("merges.txt", err)
	}
	merges, err := resolveMerges(pairs, vocab, "")
	if err != nil {
		return nil, wrap("merges.txt", err)
	}
	class := strings.TrimSuffix(c.Class, "Fast")
	traits := byteLevelClasses[class]
	if class == "GPT2Tokenizer" || traits.clsSep {
		c.nameRoles(byteLevelRoles(traits), spClass{objects: true})
	}
	d := &tokenizer.Definition{
		PreTokenizer: &tokenizer.Component{Type: "ByteLevel", AddPrefixSpace: ptr(isTrue(c.AddPrefix))},
		Decoder:      &tokenizer.Component{Type: "ByteLevel"},
		Model:        tokenizer.Model{Type: "BPE", Vocab: tokenizer.SortedVocab(vocab), Merges: merges},
	}
	if traits.pattern != "" {
		d.PreTokenizer = &tokenizer.Component{Type: "Sequence", Pretokenizers: append(isolated(traits.pattern),
			tokenizer.Component{Type: "ByteLevel", AddPrefixSpace: ptr(isTrue(c.AddPrefix)), UseRegex: ptr(false)})}
	}
	if traits.nfc {
		d.Normalizer = &tokenizer.Component{Type: "NFC"}
	}
	cls, sep := c.firstNamed(vocab, []string{"cls", "bos"}), c.firstNamed(vocab, []string{"sep", "eos"})
	switch {
	case traits.clsSep && cls != nil && sep != nil:
		d.PostProcessor = &tokenizer.Component{Type: "RobertaProcessing",
			Cls: &tokenizer.TokenPair{Token: cls[0].text, ID: cls[0].id}, Sep: &tokenizer.TokenPair{Token: sep[0].text, ID: sep[0].id}}
	case isTrue(c.AddBOS):
		d.PostProcessor = templateOf(c.firstNamed(vocab, []string{"bos"}), nil)
	}
	return d, nil
}

// A byteLevelTraits describes how a class differs from GPT-2's tokenizer.
type byteLevelTraits struct {
	clsSep  bool // adds CLS before and SEP after texts
	pattern string
	nfc     bool
}

var byteLevelClasses = map[string]byteLevelTraits{
	"RobertaTokenizer":    {clsSep: true},
	"BartTokenizer":       {clsSep: true},
	"LongformerTokenizer": {clsSep: true},
	"LEDTokenizer":        {clsSep: true},
	"MvpTokenizer":        {clsSep: true},
	"Qwen2Tokenizer":      {pattern: qwen2Pattern, nfc: true},
}

// byteLevelRoles returns the default special tokens of GPT-2 and of RoBERTa and its
// variants.
func byteLevelRoles(traits byteLevelTraits) map[string]string {
	if traits.clsSep {
		return fairseqRoles
	}
	end := "<|endoftext|>"
	return map[string]string{"bos": end, "eos": end, "unk": end}
}

// firstNamed returns the token of the first role that the configuration names and
// the vocabulary contains.
func (c *hfConfig) firstNamed(vocab map[string]int32, roles []string) []edgeToken {
	for _, role := range roles {
		if t, ok := c.special[role]; ok {
			if id, ok := vocab[t.Content]; ok {
				return []edgeToken{{t.Content, id}}
			}
		}
	}
	return nil
}

// loadWordPiece reads BERT's vocab.txt, one token per line.
func loadWordPiece(f Files, c *hfConfig) (*tokenizer.Definition, error) {
	text := strings.TrimSuffix(strings.ReplaceAll(string(f["vocab.txt"]), "\r\n", "\n"), "\n")
	ids := map[string]int32{}
	for i, token := range strings.Split(text, "\n") {
		ids[token] = int32(i)
	}
	if c.CleanUp == nil {
		c.CleanUp = ptr(true)
	}
	mpnet := strings.TrimSuffix(c.Class, "Fast") == "MPNetTokenizer"
	names := wordPieceRoles
	if mpnet {
		names = mpnetRoles
	}
	for role, token := range names {
		if _, ok := c.special[role]; !ok {
			if _, ok := ids[token]; ok {
				c.special[role] = namedToken{AddedToken: tokenizer.AddedToken{Content: token, Special: true, LStrip: mpnet && role == "mask"}}
			}
		}
	}
	if _, ok := c.special["unk"]; !ok {
		return nil, fmt.Errorf("no token [UNK] found; tokenizer_config.json should name unk_token")
	}
	pair := pairSegments
	if mpnet {
		pair = pairDoubled
	}
	d := &tokenizer.Definition{
		Normalizer: &tokenizer.Component{Type: "BertNormalizer", Lowercase: ptr(orTrue(c.LowerCase)),
			StripAccents: c.StripAccents, HandleChineseChars: ptr(orTrue(c.ChineseChars))},
		PreTokenizer:  &tokenizer.Component{Type: "BertPreTokenizer"},
		Decoder:       &tokenizer.Component{Type: "WordPiece"},
		PostProcessor: spClass{pair: pair}.template(c.firstNamed(ids, []string{"cls"}), c.firstNamed(ids, []string{"sep"})),
		Model: tokenizer.Model{Type: "WordPiece", Prefix: "##", MaxWordChars: 100, Vocab: tokenizer.SortedVocab(ids),
			UnkToken: ptr(c.special["unk"].Content)},
	}
	for _, role := range slices.Sorted(mapKeys(c.special)) {
		t := c.special[role]
		d.Added = append(d.Added, tokenizer.AddedToken{Content: t.Content, Special: true})
	}
	return d, nil
}
