package tokenizer

import (
	"encoding/json"
	"fmt"
)

// A Definition contains all settings and tables of a tokenizer, as in tokenizer.json.
// The readers of tokenizer files (spec/tokenizerfile) return it, Marshal encodes it and
// New creates a Tokenizer from it.
type Definition struct {
	Added         []AddedToken `json:"added_tokens,omitempty"`
	Normalizer    *Component   `json:"normalizer,omitempty"`
	PreTokenizer  *Component   `json:"pre_tokenizer,omitempty"`
	PostProcessor *Component   `json:"post_processor,omitempty"`
	Decoder       *Component   `json:"decoder,omitempty"`
	Model         Model        `json:"model"`
	Config        Config       `json:"config"`
}

// A Config contains the settings outside of the pipeline: named special tokens (role
// such as "bos" to token text), the chat template, the cleanup of decoded text and the
// format of infill prompts.
type Config struct {
	Special      map[string]string `json:"special,omitempty"`
	ExtraEOS     []int32           `json:"extra_eos,omitempty"`
	ChatTemplate string            `json:"chat_template,omitempty"`
	CleanUp      bool              `json:"clean_up,omitempty"`
	Target       string            `json:"target,omitempty"` // target language of translation
	Infill       *InfillFormat     `json:"infill,omitempty"`
}

// A Model holds the parameters of every kind of model. Vocabulary, scores and merges
// are not encoded as JSON, because they are large.
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

// A SentencePiece configures a SentencePiece model with a separate vocabulary for the
// ids of its pieces, as in the tokenizers of M2M-100 and Marian.
type SentencePiece struct {
	BPE          bool   `json:"bpe,omitempty"`
	Charsmap     []byte `json:"charsmap,omitempty"`
	DummyPrefix  bool   `json:"dummy_prefix,omitempty"`
	RemoveSpaces bool   `json:"remove_spaces,omitempty"`
	ByteFallback bool   `json:"byte_fallback,omitempty"`
	// Types maps the ids of pieces other than normal ones to their types.
	Types map[int32]int `json:"types,omitempty"`
	// LanguageCodes makes a leading >>xx<< a token of its own.
	LanguageCodes bool `json:"language_codes,omitempty"`
	// SpaceAfterSpecial makes decoding insert a space after special tokens.
	SpaceAfterSpecial bool `json:"space_after_special,omitempty"`
	// Joined makes decoding join the pieces unchanged, including unknown and control
	// pieces.
	Joined     bool   `json:"joined,omitempty"`
	UnkSurface string `json:"unk_surface,omitempty"`
	// Target lists the pieces of the model for decoding, if it is a different one.
	Target []string `json:"target,omitempty"`
	// TargetVocab is the vocabulary for decoding, if it is a different one.
	TargetVocab map[string]int32 `json:"target_vocab,omitempty"`
}

// Piece types of sentencepiece_model.proto, used in SentencePiece.Types.
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

// A Merge is a BPE merge of the tokens Left and Right (ids) into Into.
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

// A Component is a normalizer, pre-tokenizer, post-processor or decoder. It has the
// union of their parameters, named as in tokenizer.json.
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
