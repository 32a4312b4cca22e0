package tokenizerfile

import (
	"maps"
	"slices"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Published split patterns of byte-level tokenizers, as in their tokenizer.json
// files.
const (
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	tekkenPattern = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	bloomPattern  = ` ?[^(\s|.,!?…。，、।۔،)]+`

	deepseekV3Words = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
	seedPattern     = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{L}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	bailingPattern  = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	kimiPattern     = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// A ggufPre is the pre-tokenizer of a value of tokenizer.ggml.pre.
type ggufPre struct {
	steps        []tokenizer.Component // steps before the byte-level mapping; none: GPT-2's split
	gpt2         bool                  // apply GPT-2's split after the steps
	nfc          bool
	ignoreMerges bool
	addBOS       bool
}

func (p ggufPre) component() *tokenizer.Component {
	last := tokenizer.Component{Type: "ByteLevel", AddPrefixSpace: ptr(false), UseRegex: ptr(p.gpt2)}
	return &tokenizer.Component{Type: "Sequence", Pretokenizers: append(slices.Clone(p.steps), last)}
}

func (p ggufPre) normalizer() *tokenizer.Component {
	if p.nfc {
		return &tokenizer.Component{Type: "NFC"}
	}
	return nil
}

func isolated(patterns ...string) []tokenizer.Component {
	var out []tokenizer.Component
	for _, p := range patterns {
		out = append(out, tokenizer.Component{Type: "Split", Pattern: &tokenizer.Pattern{Regex: ptr(p)}, Behavior: "Isolated"})
	}
	return out
}

var (
	gpt2Pre   = ggufPre{gpt2: true}
	digitsPre = ggufPre{steps: []tokenizer.Component{{Type: "Digits", IndividualDigits: true}}, gpt2: true}
	llama3Pre = ggufPre{steps: isolated(llama3Pattern), ignoreMerges: true, addBOS: true}
	cl100kPre = ggufPre{steps: isolated(llama3Pattern)}
	qwen2Pre  = ggufPre{steps: isolated(qwen2Pattern), nfc: true}
	o200kPre  = ggufPre{steps: isolated(o200kPattern)}
	bloomPre  = ggufPre{steps: isolated(bloomPattern)}
	falconPre = ggufPre{steps: []tokenizer.Component{
		{Type: "Punctuation", Behavior: "Contiguous"},
		{Type: "ByteLevel", AddPrefixSpace: ptr(false), UseRegex: ptr(true)},
		{Type: "Digits"},
		{Type: "Split", Pattern: &tokenizer.Pattern{Regex: ptr("[0-9][0-9][0-9]")}, Behavior: "Isolated"},
	}}
	deepseekV3Pre = ggufPre{steps: isolated(`\p{N}{1,3}`, `[一-龥぀-ゟ゠-ヿ]+`, deepseekV3Words)}
	deepseekPre   = ggufPre{steps: append(isolated(`[\r\n]`, deepseekLetters, deepseekPunctuation, `\s+$`, `[一-龥ࠀ-一가-퟿]+`),
		tokenizer.Component{Type: "Digits", IndividualDigits: true})}
	deepseekCoderPre = ggufPre{steps: append(isolated(`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, `[一-龥ࠀ-一가-퟿]+`),
		tokenizer.Component{Type: "Digits", IndividualDigits: true})}
)

const (
	deepseekLetters     = `\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`
	deepseekPunctuation = `\s?[!-/:-~！-／：-～‘-‟　-。]+`
)

// ggufPreTokenizers maps every known value of tokenizer.ggml.pre to its pre-tokenizer.
var ggufPreTokenizers = map[string]ggufPre{
	"": gpt2Pre, "default": gpt2Pre, "gpt-2": gpt2Pre, "mpt": gpt2Pre, "olmo": gpt2Pre, "jais": gpt2Pre,
	"phi-2": gpt2Pre, "trillion": gpt2Pre, "roberta-bpe": gpt2Pre, "jina-es": gpt2Pre, "jina-de": gpt2Pre,
	"jina-v1-en": gpt2Pre, "jina-v2-es": gpt2Pre, "jina-v2-de": gpt2Pre, "jina-v2-code": gpt2Pre,
	"a.x-4.0": gpt2Pre, "mellum": gpt2Pre, "exaone4": gpt2Pre, "modern-bert": {gpt2: true, nfc: true},

	"smollm": digitsPre, "starcoder": digitsPre, "refact": digitsPre, "codeshell": digitsPre, "exaone": digitsPre,
	"minerva-7b": digitsPre, "command-r": {steps: digitsPre.steps, gpt2: true, nfc: true, addBOS: true},

	"llama-bpe": llama3Pre, "llama3": llama3Pre, "llama-v3": llama3Pre, "falcon3": llama3Pre, "falcon-h1": llama3Pre,
	"pixtral": llama3Pre, "midm-2.0": llama3Pre, "lfm2": llama3Pre,
	"dbrx": cl100kPre, "smaug-bpe": cl100kPre, "glm4": cl100kPre, "chatglm-bpe": cl100kPre, "olmo2": cl100kPre,

	"qwen2": qwen2Pre, "deepseek-r1-qwen": qwen2Pre, "kormo": qwen2Pre, "megrez": qwen2Pre,
	"stablelm2": {steps: isolated(qwen2Pattern)}, "hunyuan": {steps: isolated(qwen2Pattern)},

	"tekken": {steps: isolated(tekkenPattern), ignoreMerges: true, addBOS: true},
	"gpt-4o": o200kPre, "llama4": {steps: isolated(o200kPattern), addBOS: true},
	"kimi-k2": {steps: isolated(kimiPattern)}, "seed-coder": {steps: isolated(seedPattern)},
	"bailingmoe": {steps: isolated(bailingPattern)}, "bailingmoe2": {steps: isolated(bailingPattern)},
	"superbpe": {steps: isolated(`\p{N}+`, `(?=(\d{3})+(?!\d))`), gpt2: true},

	"falcon": falconPre, "bloom": bloomPre, "poro-chat": bloomPre, "gpt3-finnish": bloomPre,
	"viking":       {steps: isolated(bloomPattern, `\p{N}`)},
	"deepseek-llm": deepseekPre, "deepseek-coder": deepseekCoderPre, "deepseek-v3": deepseekV3Pre, "hunyuan-dense": deepseekV3Pre,
}

func ggufPreNames() []string {
	names := slices.Sorted(maps.Keys(ggufPreTokenizers))
	return names[1:] // without ""
}
