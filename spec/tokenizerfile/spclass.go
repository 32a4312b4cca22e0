package tokenizerfile

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// An spClass describes how a tokenizer class of transformers converts a
// SentencePiece model to a pipeline (convert_slow_tokenizer.py).
type spClass struct {
	layout spLayout
	// first are the pieces before the model's own pieces; the first skip of the
	// model's pieces are omitted.
	first []string
	skip  int
	mask  bool // <mask> follows the pieces
	// languages is the key of languageCodes for the language tokens after the
	// pieces. They precede <mask>, or follow it if maskFirst is set. source is the
	// default language of a text.
	languages string
	source    string
	maskFirst bool
	// library: the class uses the SentencePiece library itself and has no fast
	// form. joined: decoding only concatenates the pieces.
	library, joined bool
	objects         bool     // the class sets how every special token is matched
	normalized      []string // roles with tokens that are matched in normalized text
	special         []string // user-defined pieces that are special
	unused          []string // the special tokens among the first pieces
	// extraIDs is the number of <extra_id_N> tokens after the pieces, highest N first.
	extraIDs int
	offset   int // Pegasus: number of placeholder ids before the model's own pieces
	// numberComma: pieces that end in a digit and a comma have a very low score.
	numberComma   bool
	accents       accentRule
	before, after []string // roles around a text; "lang" is the source language
	pair          pairLayout
}

// An spLayout is a treatment of spaces.
type spLayout uint8

const (
	layoutMetaspace spLayout = iota // spaces normalized, text split into words (T5, XLM-R)
	layoutLlama                     // spaces kept, byte fallback
	layoutGemma                     // as Llama, without a leading space
)

// An accentRule states when quotes are unified and accents stripped.
type accentRule uint8

const (
	accentsKept       accentRule = iota
	blanksLast                   // spaces are normalized afterwards (ALBERT)
	blanksBeforeMarks            // spaces are normalized first (RemBERT)
)

// A pairLayout states the special tokens between and after two texts A and B.
type pairLayout uint8

const (
	pairJoined   pairLayout = iota // A B, then the tokens after a text
	pairEach                       // each text followed by the tokens after a text
	pairDoubled                    // as pairEach, with one more copy between the texts
	pairSegments                   // as pairEach, B in segment 1
)

var (
	fairseqPieces   = []string{"<s>", "<pad>", "</s>", "<unk>"}
	camembertPieces = []string{"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"}
)

var spClasses = map[string]spClass{
	"LlamaTokenizer":          {layout: layoutLlama},
	"CodeLlamaTokenizer":      {layout: layoutLlama},
	"Phi3Tokenizer":           {layout: layoutLlama},
	"GemmaTokenizer":          {layout: layoutGemma, special: []string{"<start_of_turn>", "<end_of_turn>"}},
	"T5Tokenizer":             {extraIDs: 100, after: []string{"eos"}, pair: pairEach},
	"MT5Tokenizer":            {extraIDs: 100, after: []string{"eos"}, pair: pairEach},
	"XLMRobertaTokenizer":     {first: fairseqPieces, skip: 3, mask: true, before: []string{"bos"}, after: []string{"eos"}, pair: pairDoubled},
	"MBartTokenizer":          {first: fairseqPieces, skip: 3, mask: true, languages: "mbart", source: "en_XX", after: []string{"eos", "lang"}},
	"MBart50Tokenizer":        {first: fairseqPieces, skip: 3, mask: true, normalized: []string{"mask"}, languages: "mbart50", source: "en_XX", before: []string{"lang"}, after: []string{"eos"}},
	"NllbTokenizer":           {first: fairseqPieces, skip: 3, mask: true, maskFirst: true, normalized: []string{"mask"}, languages: "nllb", source: "eng_Latn", before: []string{"lang"}, after: []string{"eos"}},
	"PLBartTokenizer":         {first: fairseqPieces, skip: 3, mask: true, languages: "plbart_base", library: true, joined: true, after: []string{"eos", "lang"}},
	"BertGenerationTokenizer": {library: true},
	"CamembertTokenizer":      {first: camembertPieces, skip: 1, unused: []string{"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}, mask: true, before: []string{"bos"}, after: []string{"eos"}, pair: pairDoubled},
	"PegasusTokenizer":        {offset: 103, skip: 2, after: []string{"eos"}},
	"BigBirdTokenizer":        {objects: true, normalized: []string{"unk"}, before: []string{"cls"}, after: []string{"sep"}, pair: pairSegments},
	"AlbertTokenizer":         {numberComma: true, accents: blanksLast, before: []string{"cls"}, after: []string{"sep"}, pair: pairSegments},
	"RemBertTokenizer":        {accents: blanksBeforeMarks, before: []string{"cls"}, after: []string{"sep"}, pair: pairSegments},
}

// wordPieceRoles are the default special tokens of vocab.txt; mpnetRoles are those
// of MPNet.
var (
	wordPieceRoles = map[string]string{"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
	mpnetRoles     = map[string]string{"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "unk": "[UNK]", "pad": "<pad>", "mask": "<mask>"}
)

// spRoles are the default special tokens of the classes.
var spRoles = map[string]map[string]string{
	"AlbertTokenizer":     {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "bos": "[CLS]", "eos": "[SEP]", "pad": "<pad>", "unk": "<unk>"},
	"RemBertTokenizer":    {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "bos": "[CLS]", "eos": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"},
	"BigBirdTokenizer":    {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "bos": "<s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>"},
	"LlamaTokenizer":      {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
	"GemmaTokenizer":      {"bos": "<bos>", "eos": "<eos>", "unk": "<unk>", "pad": "<pad>"},
	"PegasusTokenizer":    {"eos": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask_2>"},
	"T5Tokenizer":         {"eos": "</s>", "pad": "<pad>", "unk": "<unk>"},
	"MT5Tokenizer":        {"eos": "</s>", "pad": "<pad>", "unk": "<unk>"},
	"XLMRobertaTokenizer": fairseqRoles, "CamembertTokenizer": fairseqRoles, "MBartTokenizer": fairseqRoles,
	"MBart50Tokenizer": fairseqRoles, "NllbTokenizer": fairseqRoles, "PLBartTokenizer": fairseqRoles,
	"BertGenerationTokenizer": {"bos": "<s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>", "sep": "<::::>"},
}

var fairseqRoles = map[string]string{"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}

// lead returns the pieces before the model's own pieces.
func (s spClass) lead() []string {
	if s.offset == 0 {
		return s.first
	}
	out := []string{"<pad>", "</s>", "<mask_1>", "<mask_2>"}
	for i := 2; i < s.offset; i++ {
		out = append(out, fmt.Sprintf("<unk_%d>", i))
	}
	return out
}

// score returns a piece's score as modified by the class.
func (s spClass) score(p spPiece) float64 {
	score := float64(p.Score)
	if n := len(p.Text); s.numberComma && n > 1 && p.Text[n-1] == ',' {
		if r, _ := utf8.DecodeLastRuneInString(p.Text[:n-1]); unicode.IsDigit(r) {
			score -= 100
		}
	}
	return score
}

// tidy returns the class's normalizer of quotes, accents, case and spaces.
func (s spClass) tidy(charsmap []byte, c *hfConfig) *tokenizer.Component {
	quote := func(q string) tokenizer.Component {
		return tokenizer.Component{Type: "Replace", Pattern: &tokenizer.Pattern{String: ptr(q)}, Content: `"`}
	}
	blanks := tokenizer.Component{Type: "Replace", Pattern: &tokenizer.Pattern{Regex: ptr(" {2,}")}, Content: " "}
	steps := []tokenizer.Component{quote("``"), quote("''")}
	if s.accents == blanksBeforeMarks {
		steps = append(steps, blanks)
	}
	keep := s.accents == blanksBeforeMarks // ALBERT strips accents by default
	if c.KeepAccents != nil {
		keep = *c.KeepAccents
	}
	if !keep {
		steps = append(steps, tokenizer.Component{Type: "NFKD"}, tokenizer.Component{Type: "StripAccents"})
	}
	lower := s.accents == blanksLast // RemBERT keeps case by default
	if c.LowerCase != nil {
		lower = *c.LowerCase
	}
	if lower {
		steps = append(steps, tokenizer.Component{Type: "Lowercase"})
	}
	if len(charsmap) > 0 {
		steps = append(steps, tokenizer.Component{Type: "Precompiled", Charsmap: charsmap})
	}
	if s.accents == blanksLast {
		steps = append(steps, blanks)
	}
	return &tokenizer.Component{Type: "Sequence", Normalizers: steps}
}

// template returns the post-processor that adds these tokens around a text.
func (s spClass) template(before, after []edgeToken) *tokenizer.Component {
	c := templateOf(before, after)
	if s.pair == pairSegments {
		return withPair(c)
	}
	tail := func() {
		for _, t := range after {
			c.Pair = append(c.Pair, tokenizer.TemplatePiece{SpecialToken: &tokenizer.TemplateRef{ID: t.text}})
		}
	}
	if s.pair == pairJoined {
		return c
	}
	c.Pair = append(c.Pair, c.Single...)
	if s.pair == pairDoubled {
		tail()
	}
	c.Pair = append(c.Pair, tokenizer.TemplatePiece{Sequence: &tokenizer.TemplateRef{ID: "B"}})
	tail()
	return c
}
