package tokenizer

import (
	"encoding/json"
	"fmt"
)

// A Definition is everything a tokenizer is made of, as tokenizer.json has it. The
// readers of tokenizer files (spec/tokenizerfile) produce it, Marshal writes it
// and New turns it into a Tokenizer.
type Definition struct {
	Added         []AddedToken `json:"added_tokens,omitempty"`
	Normalizer    *Component   `json:"normalizer,omitempty"`
	PreTokenizer  *Component   `json:"pre_tokenizer,omitempty"`
	PostProcessor *Component   `json:"post_processor,omitempty"`
	Decoder       *Component   `json:"decoder,omitempty"`
	Model         Model        `json:"model"`
	Config        Config       `json:"config"`
}

// A Config is what lies beside the pipeline: named special tokens (role such as
// "bos" to token text), the chat template and how decoded text is tidied.
type Config struct {
	Special      map[string]string `json:"special,omitempty"`
	ExtraEOS     []int32           `json:"extra_eos,omitempty"`
	ChatTemplate string            `json:"chat_template,omitempty"`
	CleanUp      bool              `json:"clean_up,omitempty"`
	Target       string            `json:"target,omitempty"` // language to translate into
}

// A Model holds the parameters of every model kind; vocabulary, scores and
// merges are kept apart from JSON because they are large.
type Model struct {
	Type         string  `json:"type"`
	UnkToken     *string `json:"unk_token,omitempty"`
	UnkID        *int    `json:"unk_id,omitempty"` // Unigram
	Prefix       string  `json:"continuing_subword_prefix,omitempty"`
	Suffix       string  `json:"end_of_word_suffix,omitempty"`
	FuseUnk      bool    `json:"fuse_unk,omitempty"`
	ByteFallback bool    `json:"byte_fallback,omitempty"`
	IgnoreMerges bool    `json:"ignore_merges,omitempty"`
	MaxWordChars int     `json:"max_input_chars_per_word,omitempty"`

	SentencePiece *SentencePiece `json:"sentencepiece,omitempty"`

	Vocab  []Entry   `json:"-"`
	Inner  []Entry   `json:"-"` // SentencePiece: its own pieces and ids
	Scores []float64 `json:"-"` // Unigram: one per entry of Vocab; SentencePiece: of Inner
	Merges []Merge   `json:"-"` // BPE, best first; SentencePiece: in ids of Inner
}

// A SentencePiece is a SentencePiece model whose pieces are looked up in another
// vocabulary, as the tokenizers of M2M-100 and Marian do.
type SentencePiece struct {
	BPE          bool   `json:"bpe,omitempty"`
	Charsmap     []byte `json:"charsmap,omitempty"`
	DummyPrefix  bool   `json:"dummy_prefix,omitempty"`
	RemoveSpaces bool   `json:"remove_spaces,omitempty"`
	ByteFallback bool   `json:"byte_fallback,omitempty"`
	// Types lists the pieces that are not normal ones: id to type.
	Types map[int32]int `json:"types,omitempty"`
	// LanguageCodes: a leading >>xx<< is a token of its own.
	LanguageCodes bool `json:"language_codes,omitempty"`
	// SpaceAfterSpecial: decoding puts a blank behind special tokens.
	SpaceAfterSpecial bool `json:"space_after_special,omitempty"`
	// Joined: decoding joins the pieces as they are, unknown and control ones too.
	Joined     bool   `json:"joined,omitempty"`
	UnkSurface string `json:"unk_surface,omitempty"`
	// Target lists the pieces of the model that decodes, if it is another one.
	Target []string `json:"target,omitempty"`
	// TargetVocab is the vocabulary of ids to decode, if it is another one.
	TargetVocab map[string]int32 `json:"target_vocab,omitempty"`
}

// Piece types of sentencepiece_model.proto, as SentencePiece.Types has them.
const (
	PieceNormal      = 1
	PieceUnknown     = 2
	PieceControl     = 3
	PieceUserDefined = 4
	PieceUnused      = 5
	PieceByte        = 6
)

// An Entry is a token and its id.
type Entry struct {
	Token string
	ID    int32
}

// A Merge joins the pieces Left and Right (ids) into Into.
type Merge struct{ Left, Right, Into int32 }

// An AddedToken is one entry of added_tokens.
type AddedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word,omitempty"`
	LStrip     bool   `json:"lstrip,omitempty"`
	RStrip     bool   `json:"rstrip,omitempty"`
	Normalized bool   `json:"normalized,omitempty"`
	Special    bool   `json:"special,omitempty"`
}

// A Component is one normalizer, pre-tokenizer, post-processor or decoder with
// the union of their parameters, named as in tokenizer.json.
type Component struct {
	Type string `json:"type"`

	Normalizers   []Component `json:"normalizers,omitempty"`
	Pretokenizers []Component `json:"pretokenizers,omitempty"`
	Processors    []Component `json:"processors,omitempty"`
	Decoders      []Component `json:"decoders,omitempty"`

	Pattern  *Pattern `json:"pattern,omitempty"`
	Behavior string   `json:"behavior,omitempty"`
	Invert   bool     `json:"invert,omitempty"`
	Content  string   `json:"content,omitempty"`
	Prepend  string   `json:"prepend,omitempty"`
	Charsmap []byte   `json:"precompiled_charsmap,omitempty"` // base64 in JSON

	CleanText          *bool `json:"clean_text,omitempty"`
	HandleChineseChars *bool `json:"handle_chinese_chars,omitempty"`
	StripAccents       *bool `json:"strip_accents,omitempty"`
	Lowercase          *bool `json:"lowercase,omitempty"`
	StripLeft          bool  `json:"strip_left,omitempty"`
	StripRight         bool  `json:"strip_right,omitempty"`

	AddPrefixSpace   *bool  `json:"add_prefix_space,omitempty"`
	UseRegex         *bool  `json:"use_regex,omitempty"`
	Replacement      string `json:"replacement,omitempty"`
	PrependScheme    string `json:"prepend_scheme,omitempty"`
	Split            *bool  `json:"split,omitempty"`
	IndividualDigits bool   `json:"individual_digits,omitempty"`
	Delimiter        string `json:"delimiter,omitempty"`
	Length           int    `json:"length,omitempty"`

	Single        []TemplatePiece          `json:"single,omitempty"`
	Pair          []TemplatePiece          `json:"pair,omitempty"`
	SpecialTokens map[string]TemplateToken `json:"special_tokens,omitempty"`
	Sep           *TokenPair               `json:"sep,omitempty"`
	Cls           *TokenPair               `json:"cls,omitempty"`

	Prefix        *string `json:"prefix,omitempty"`
	Suffix        *string `json:"suffix,omitempty"`
	Cleanup       *bool   `json:"cleanup,omitempty"`
	Start         int     `json:"start,omitempty"`
	Stop          int     `json:"stop,omitempty"`
	PadToken      *string `json:"pad_token,omitempty"`
	WordDelimiter *string `json:"word_delimiter_token,omitempty"`
}

// A Pattern is {"String": …} or {"Regex": …}.
type Pattern struct {
	String *string `json:"String,omitempty"`
	Regex  *string `json:"Regex,omitempty"`
}

// A TemplatePiece is one element of a TemplateProcessing template.
type TemplatePiece struct {
	SpecialToken *TemplateRef `json:"SpecialToken,omitempty"`
	Sequence     *TemplateRef `json:"Sequence,omitempty"`
}

// A TemplateRef names a token, or text A or B, and its segment.
type TemplateRef struct {
	ID     string `json:"id"`
	TypeID int    `json:"type_id"`
}

// A TemplateToken lists the ids that a special token stands for.
type TemplateToken struct {
	IDs []int32 `json:"ids"`
}

// A TokenPair is ["token", id] in BertProcessing and RobertaProcessing.
type TokenPair struct {
	Token string
	ID    int32
}

// UnmarshalJSON reads ["token", id].
func (p *TokenPair) UnmarshalJSON(data []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || len(raw) != 2 {
		return fmt.Errorf(`expected ["token", id], found %.40s`, data)
	}
	if err := json.Unmarshal(raw[0], &p.Token); err != nil {
		return err
	}
	return json.Unmarshal(raw[1], &p.ID)
}

// MarshalJSON writes ["token", id].
func (p TokenPair) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.Token, p.ID})
}

func orTrue(b *bool) bool { return b == nil || *b }
