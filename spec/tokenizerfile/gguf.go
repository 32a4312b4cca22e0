package tokenizerfile

import (
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A ggufReader reads typed values from GGUF metadata.
type ggufReader struct {
	meta map[string]any
	err  error // the first wrong type
}

func (r *ggufReader) fail(key, want string, got any) {
	if r.err == nil {
		r.err = fmt.Errorf("gguf key %s: expected %s, found %T", key, want, got)
	}
}

func (r *ggufReader) text(key string) string {
	v, ok := r.meta[key]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		r.fail(key, "a string", v)
	}
	return s
}

func (r *ggufReader) flag(key string, otherwise bool) bool {
	v, ok := r.meta[key]
	if !ok {
		return otherwise
	}
	b, ok := v.(bool)
	if !ok {
		r.fail(key, "a boolean", v)
	}
	return b
}

// id returns an optional token id.
func (r *ggufReader) id(key string) (int32, bool) {
	v, ok := r.meta[key]
	if !ok {
		return 0, false
	}
	n, ok := wholeNumber(v)
	if !ok || n < 0 || n > math.MaxInt32 {
		if !ok {
			r.fail(key, "an integer", v)
		}
		return 0, false // some writers store -1 for "none"
	}
	return int32(n), true
}

func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int8:
		return int64(n), true
	case int16:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case uint8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint32:
		return int64(n), true
	case uint64:
		return int64(n), n <= math.MaxInt64
	}
	return 0, false
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float32:
		return float64(n), true
	case float64:
		return n, true
	}
	n, ok := wholeNumber(v)
	return float64(n), ok
}

func asIs(v any) (string, bool) { s, ok := v.(string); return s, ok }

// list reads an array that is given as []any or as a typed slice.
func list[T any](r *ggufReader, key string, convert func(any) (T, bool)) []T {
	v, ok := r.meta[key]
	if !ok {
		return nil
	}
	switch a := v.(type) {
	case []T:
		return a
	case []any:
		return convertAll(r, key, a, convert)
	case []float32:
		return convertAll(r, key, a, convert)
	case []int32:
		return convertAll(r, key, a, convert)
	case []uint32:
		return convertAll(r, key, a, convert)
	case []int64:
		return convertAll(r, key, a, convert)
	case []uint64:
		return convertAll(r, key, a, convert)
	case []int8:
		return convertAll(r, key, a, convert)
	case []uint8:
		return convertAll(r, key, a, convert)
	case []int16:
		return convertAll(r, key, a, convert)
	case []uint16:
		return convertAll(r, key, a, convert)
	}
	r.fail(key, "an array", v)
	return nil
}

func convertAll[E, T any](r *ggufReader, key string, in []E, convert func(any) (T, bool)) []T {
	out := make([]T, len(in))
	for i := range in {
		v, ok := convert(in[i])
		if !ok {
			r.fail(fmt.Sprintf("%s[%d]", key, i), fmt.Sprintf("%T", v), in[i])
			return nil
		}
		out[i] = v
	}
	return out
}

// Token types of tokenizer.ggml.token_type.
const (
	ggufUnknown     = 2
	ggufControl     = 3
	ggufUserDefined = 4
)

// A ggufVocab is the vocabulary in GGUF metadata.
type ggufVocab struct {
	reader *ggufReader
	tokens []string
	scores []float64
	types  []int64
	merges []string
}

// FromGGUF returns the tokenizer that GGUF metadata (tokenizer.ggml.*) describes.
// Arrays may be []any or typed slices.
func FromGGUF(meta map[string]any) (*tokenizer.Tokenizer, error) {
	r := &ggufReader{meta: meta}
	v := &ggufVocab{
		reader: r,
		tokens: list(r, "tokenizer.ggml.tokens", asIs),
		scores: list(r, "tokenizer.ggml.scores", number),
		types:  list(r, "tokenizer.ggml.token_type", wholeNumber),
		merges: list(r, "tokenizer.ggml.merges", asIs),
	}
	kind := r.text("tokenizer.ggml.model")
	if r.err != nil {
		return nil, r.err
	}
	if len(v.tokens) == 0 {
		return nil, fmt.Errorf("gguf key tokenizer.ggml.tokens is missing or empty; the file contains no vocabulary")
	}
	for name, n := range map[string]int{"scores": len(v.scores), "token_type": len(v.types)} {
		if n != 0 && n != len(v.tokens) {
			return nil, fmt.Errorf("gguf key tokenizer.ggml.%s has %d elements; expected one per token, %d", name, n, len(v.tokens))
		}
	}
	make, ok := ggufModels[kind]
	if !ok {
		return nil, fmt.Errorf("gguf key tokenizer.ggml.model is %q; expected gpt2, llama, gemma4, bert or t5", kind)
	}
	d, err := make(v)
	if err != nil {
		return nil, wrap("gguf tokenizer", err)
	}
	v.special(d)
	v.addTokens(d)
	v.infill(d)
	if r.err != nil {
		return nil, r.err
	}
	t, err := tokenizer.New(d)
	if err != nil {
		return nil, wrap("gguf tokenizer", err)
	}
	return t, nil
}

var ggufModels = map[string]func(*ggufVocab) (*tokenizer.Definition, error){
	"gpt2": (*ggufVocab).byteLevel, "llama": (*ggufVocab).scoredBPE, "gemma4": (*ggufVocab).wholeTexts,
	"bert": (*ggufVocab).wordPiece, "t5": (*ggufVocab).unigram,
}

func (v *ggufVocab) vocab() []tokenizer.Entry {
	out := make([]tokenizer.Entry, len(v.tokens))
	for i, t := range v.tokens {
		out[i] = tokenizer.Entry{Token: t, ID: int32(i)}
	}
	return out
}

func (v *ggufVocab) kind(i int) int64 {
	if i < len(v.types) {
		return v.types[i]
	}
	return 1
}

// edges adds BOS and EOS around texts as the file or the defaults state.
func (v *ggufVocab) edges(bos, eos bool) *tokenizer.Component {
	var before, after []edgeToken
	if id, ok := v.reader.id("tokenizer.ggml.bos_token_id"); ok && int(id) < len(v.tokens) && v.reader.flag("tokenizer.ggml.add_bos_token", bos) {
		before = append(before, edgeToken{v.tokens[id], id})
	}
	if id, ok := v.reader.id("tokenizer.ggml.eos_token_id"); ok && int(id) < len(v.tokens) && v.reader.flag("tokenizer.ggml.add_eos_token", eos) {
		after = append(after, edgeToken{v.tokens[id], id})
	}
	if len(before)+len(after) == 0 {
		return nil
	}
	return templateOf(before, after)
}

func (v *ggufVocab) byteLevel() (*tokenizer.Definition, error) {
	name := v.reader.text("tokenizer.ggml.pre")
	pre, ok := ggufPreTokenizers[name]
	if !ok {
		return nil, fmt.Errorf("unknown tokenizer.ggml.pre %q; %s", name, knownPre(name))
	}
	if pre.whole {
		return v.wholeTexts()
	}
	d := &tokenizer.Definition{
		PreTokenizer: pre.component(), Normalizer: pre.normalizer(),
		Decoder:       &tokenizer.Component{Type: "ByteLevel"},
		PostProcessor: v.edges(pre.addBOS, false),
		Model:         tokenizer.Model{Type: "BPE", Vocab: v.vocab(), IgnoreMerges: pre.ignoreMerges},
	}
	return d, v.resolveMerges(d)
}

// wholeTexts returns the pipeline of Gemma's tokenizers: merges over whole texts, in which
// "▁" stands for a space, and tokens such as <0x0A> for bytes of other characters.
func (v *ggufVocab) wholeTexts() (*tokenizer.Definition, error) {
	d := pieceDefinition(v.vocab(), false)
	if id, ok := v.reader.id("tokenizer.ggml.unknown_token_id"); ok && int(id) < len(v.tokens) {
		d.Model.UnkToken = ptr(v.tokens[id])
	}
	d.PostProcessor = v.edges(true, false)
	return d, v.resolveMerges(d)
}

// resolveMerges sets the merges that the file lists.
func (v *ggufVocab) resolveMerges(d *tokenizer.Definition) error {
	ids := make(map[string]int32, len(v.tokens))
	for i, t := range v.tokens {
		ids[t] = int32(i)
	}
	pairs, err := splitMerges(v.merges)
	if err == nil {
		d.Model.Merges, err = resolveMerges(pairs, ids, "")
	}
	return err
}

func (v *ggufVocab) scoredBPE() (*tokenizer.Definition, error) {
	if len(v.scores) == 0 {
		return nil, fmt.Errorf("tokenizer.ggml.scores is missing; model llama needs it")
	}
	d := pieceDefinition(v.vocab(), v.reader.flag("tokenizer.ggml.add_space_prefix", true))
	d.Model.Merges = mergesFromScores(d.Model.Vocab, v.scores)
	if id, ok := v.reader.id("tokenizer.ggml.unknown_token_id"); ok && int(id) < len(v.tokens) {
		d.Model.UnkToken = ptr(v.tokens[id])
	}
	d.PostProcessor = v.edges(true, false)
	return d, nil
}

// pieceDefinition returns the pipeline of Llama's SentencePiece tokenizer, without merges.
func pieceDefinition(vocab []tokenizer.Entry, prefixSpace bool) *tokenizer.Definition {
	d := &tokenizer.Definition{
		Normalizer: &tokenizer.Component{Type: "Sequence"},
		Decoder: &tokenizer.Component{Type: "Sequence", Decoders: []tokenizer.Component{
			{Type: "Replace", Pattern: &tokenizer.Pattern{String: ptr("▁")}, Content: " "},
			{Type: "ByteFallback"}, {Type: "Fuse"},
		}},
		Model: tokenizer.Model{Type: "BPE", FuseUnk: true, ByteFallback: true, Vocab: vocab},
	}
	if prefixSpace {
		d.Normalizer.Normalizers = append(d.Normalizer.Normalizers, tokenizer.Component{Type: "Prepend", Prepend: "▁"})
		d.Decoder.Decoders = append(d.Decoder.Decoders, tokenizer.Component{Type: "Strip", Content: " ", Start: 1})
	}
	d.Normalizer.Normalizers = append(d.Normalizer.Normalizers,
		tokenizer.Component{Type: "Replace", Pattern: &tokenizer.Pattern{String: ptr(" ")}, Content: "▁"})
	return d
}

// wordPiece restores the original prefixes: GGUF stores "▁" in front of words and
// no prefix in front of continuations.
func (v *ggufVocab) wordPiece() (*tokenizer.Definition, error) {
	d := &tokenizer.Definition{
		Normalizer: &tokenizer.Component{Type: "BertNormalizer",
			Lowercase:    ptr(v.reader.flag("tokenizer.ggml.normalizer.lowercase", true)),
			StripAccents: ptr(v.reader.flag("tokenizer.ggml.normalizer.strip_accents", true))},
		PreTokenizer: &tokenizer.Component{Type: "BertPreTokenizer"},
		Decoder:      &tokenizer.Component{Type: "WordPiece"},
		Config:       tokenizer.Config{CleanUp: true},
		Model:        tokenizer.Model{Type: "WordPiece", Prefix: "##", MaxWordChars: 100, UnkToken: ptr("[UNK]")},
	}
	tokens := make([]string, len(v.tokens))
	for i, t := range v.tokens {
		switch rest, word := strings.CutPrefix(t, "▁"); {
		case word:
			t = rest
		case v.kind(i) == 1:
			t = "##" + t
		}
		tokens[i] = t
	}
	v.tokens = tokens
	d.Model.Vocab = v.vocab()
	if id, ok := v.reader.id("tokenizer.ggml.unknown_token_id"); ok && int(id) < len(v.tokens) {
		d.Model.UnkToken = ptr(v.tokens[id])
	}
	d.PostProcessor = v.bertEdges()
	return d, nil
}

// bertEdges adds CLS and SEP around texts; older files name them BOS and EOS.
func (v *ggufVocab) bertEdges() *tokenizer.Component {
	var before, after []edgeToken
	for _, key := range []string{"cls", "bos"} {
		if id, ok := v.reader.id("tokenizer.ggml." + key + "_token_id"); ok && int(id) < len(v.tokens) && before == nil {
			before = []edgeToken{{v.tokens[id], id}}
		}
	}
	for _, key := range []string{"seperator", "eos"} {
		if id, ok := v.reader.id("tokenizer.ggml." + key + "_token_id"); ok && int(id) < len(v.tokens) && after == nil {
			after = []edgeToken{{v.tokens[id], id}}
		}
	}
	return withPair(templateOf(before, after))
}

func (v *ggufVocab) unigram() (*tokenizer.Definition, error) {
	if len(v.scores) == 0 {
		return nil, fmt.Errorf("tokenizer.ggml.scores is missing; model t5 needs it")
	}
	charsmap := list(v.reader, "tokenizer.ggml.precompiled_charsmap", wholeNumber)
	raw := make([]byte, len(charsmap))
	for i, n := range charsmap {
		raw[i] = byte(n)
	}
	d := &tokenizer.Definition{
		Normalizer: &tokenizer.Component{Type: "Sequence", Normalizers: []tokenizer.Component{
			{Type: "Precompiled", Charsmap: raw}, {Type: "Strip", StripRight: true},
			{Type: "Replace", Pattern: &tokenizer.Pattern{Regex: ptr(" {2,}")}, Content: "▁"},
		}},
		PreTokenizer:  &tokenizer.Component{Type: "Metaspace", Replacement: "▁", PrependScheme: "always"},
		Decoder:       &tokenizer.Component{Type: "Metaspace", Replacement: "▁", PrependScheme: "always"},
		PostProcessor: v.edges(false, true),
		Model:         tokenizer.Model{Type: "Unigram", FuseUnk: true, Vocab: v.vocab(), Scores: v.scores},
	}
	if id, ok := v.reader.id("tokenizer.ggml.unknown_token_id"); ok {
		d.Model.UnkID = ptr(int(id))
	}
	return d, nil
}
