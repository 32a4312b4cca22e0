package tokenizerfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
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
	seedPattern     = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	bailingPattern  = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	qwen35Pattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	exaonePattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	turkishPattern  = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	jais2Pattern    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	threeDigits     = `\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))` // from the right
	sparkWords      = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+"
	kimiPattern     = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// A ggufPre is the pre-tokenizer of a value of tokenizer.ggml.pre.
type ggufPre struct {
	steps        []tokenizer.Component // steps before the byte-level mapping; none: GPT-2's split
	gpt2         bool                  // apply GPT-2's split after the steps
	nfc          bool
	ignoreMerges bool
	addBOS       bool
	whole        bool // texts are not split, and bytes not mapped
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
	ayaPre    = ggufPre{steps: isolated(`\d{1,3}(?=(?:\d{3})*\b)`, o200kPattern)}
	bloomPre  = ggufPre{steps: isolated(bloomPattern)}
	falconPre = ggufPre{steps: []tokenizer.Component{
		{Type: "Punctuation", Behavior: "Contiguous"},
		{Type: "ByteLevel", AddPrefixSpace: ptr(false), UseRegex: ptr(true)},
		{Type: "Digits"},
		{Type: "Split", Pattern: &tokenizer.Pattern{Regex: ptr("[0-9][0-9][0-9]")}, Behavior: "Isolated"},
	}}
	deepseekV3Pre = ggufPre{steps: isolated(`\p{N}{1,3}`, hanAndKana, deepseekV3Words)}
	deepseekPre   = ggufPre{steps: append(isolated(`[\r\n]`, deepseekLetters, deepseekPunctuation, `\s+$`, deepseekHan),
		tokenizer.Component{Type: "Digits", IndividualDigits: true})}
	deepseekCoderPre = ggufPre{steps: append(isolated(`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, deepseekHan),
		tokenizer.Component{Type: "Digits", IndividualDigits: true})}
)

// Patterns with characters that Unicode normalization would change are written with escapes.
const (
	deepseekLetters = "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373" +
		"\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f" +
		"\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79" +
		"-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-" +
		"\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-" +
		"\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-" +
		"\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-" +
		"\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a" +
		"\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2" +
		"\U000118a0-\U000118df\U0001e900-\U0001e943]+"
	deepseekPunctuation = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"

	deepseekHan = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
	hanAndKana  = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
	asianWords  = "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff" +
		"\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
	youtuWords         = "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|" + hanAndKana
	longcatPunctuation = " ?[\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002\u300a\u300b\u300c\u300d\u3010\u3011]+"
)

// ggufPreTokenizers maps every known value of tokenizer.ggml.pre to its pre-tokenizer.
var ggufPreTokenizers = map[string]ggufPre{
	"": gpt2Pre, "default": gpt2Pre, "gpt-2": gpt2Pre, "mpt": gpt2Pre, "olmo": gpt2Pre, "jais": gpt2Pre,
	"phi-2": gpt2Pre, "trillion": gpt2Pre, "roberta-bpe": gpt2Pre, "jina-es": gpt2Pre, "jina-de": gpt2Pre,
	"jina-v1-en": gpt2Pre, "jina-v2-es": gpt2Pre, "jina-v2-de": gpt2Pre, "jina-v2-code": gpt2Pre,
	"a.x-4.0": gpt2Pre, "mellum": gpt2Pre, "exaone4": gpt2Pre, "gigachat": gpt2Pre,
	"granite-docling": gpt2Pre, "modern-bert": {gpt2: true, nfc: true},

	"smollm": digitsPre, "starcoder": digitsPre, "refact": digitsPre, "codeshell": digitsPre, "exaone": digitsPre,
	"minerva-7b": digitsPre, "mellum2": digitsPre, "command-r": {steps: digitsPre.steps, gpt2: true, nfc: true, addBOS: true},

	"llama-bpe": llama3Pre, "llama3": llama3Pre, "llama-v3": llama3Pre, "falcon3": llama3Pre, "falcon-h1": llama3Pre,
	"pixtral": llama3Pre, "midm-2.0": llama3Pre, "lfm2": llama3Pre, "jina-v5-nano": llama3Pre,
	"dbrx": cl100kPre, "smaug-bpe": cl100kPre, "glm4": cl100kPre, "chatglm-bpe": cl100kPre, "olmo2": cl100kPre,

	"qwen2": qwen2Pre, "deepseek-r1-qwen": qwen2Pre, "kormo": qwen2Pre, "megrez": qwen2Pre, "f2llmv2": qwen2Pre,
	"qwen35":    {steps: isolated(qwen35Pattern), nfc: true},
	"stablelm2": {steps: isolated(qwen2Pattern)}, "hunyuan": {steps: isolated(qwen2Pattern)}, "solar-open": {steps: isolated(qwen2Pattern)}, "grok-2": {steps: isolated(qwen2Pattern)},
	"laguna": {steps: isolated(`[^\n]+|[\n]+`, qwen2Pattern)}, "longcat": {steps: isolated(qwen2Pattern, longcatPunctuation, deepseekHan)},

	"tekken": {steps: isolated(tekkenPattern), ignoreMerges: true, addBOS: true},
	"gpt-4o": o200kPre, "kanana2": o200kPre, "talkie": o200kPre, "minimax-m2": o200kPre, "granite-embed-multi-97m": {steps: o200kPre.steps, ignoreMerges: true},
	"youtu":    {steps: isolated(youtuWords, strings.Replace(o200kPattern, `\p{N}{1,3}`, `\p{N}`, 1)), ignoreMerges: true},
	"tiny_aya": ayaPre, "cohere2moe": ayaPre, "llama4": {steps: isolated(o200kPattern), addBOS: true},
	"kimi-k2": {steps: isolated(kimiPattern)}, "seed-coder": {steps: isolated(seedPattern)},
	"bailingmoe": {steps: isolated(bailingPattern)}, "bailingmoe2": {steps: isolated(bailingPattern)}, "llada-moe": {steps: isolated(bailingPattern)},
	"exaone-moe": {steps: isolated(exaonePattern)}, "ufakzeka": {steps: isolated(turkishPattern)}, "jais-2": {steps: isolated(jais2Pattern)},
	"minicpm5": {steps: isolated(`\p{N}{1,3}`, strings.Replace(llama3Pattern, `\p{N}{1,3}`, `\p{N}+`, 1)), ignoreMerges: true},
	"afmoe":    {steps: isolated(threeDigits, asianWords, deepseekV3Words)}, "spark2_5": {steps: isolated(`\p{N}{1,3}`, hanAndKana, sparkWords, `\p{N}`)},
	"chameleon": {steps: isolated(`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`, `\p{N}`, `[\p{P}!-/:-@\[-{-~`+"`]"), gpt2: true, addBOS: true},
	"superbpe":  {steps: isolated(`\p{N}+`, `(?=(\d{3})+(?!\d))`), gpt2: true},

	"gemma4": {whole: true}, "granite-embed-multi-311m": {whole: true}, "sarvam-moe": {whole: true},

	"falcon": falconPre, "bloom": bloomPre, "poro-chat": bloomPre, "gpt3-finnish": bloomPre,
	"viking":       {steps: isolated(bloomPattern, `\p{N}`)},
	"deepseek-llm": deepseekPre, "deepseek-coder": deepseekCoderPre, "deepseek-v3": deepseekV3Pre, "hunyuan-dense": deepseekV3Pre, "joyai-llm": deepseekV3Pre, "hy_v4": deepseekV3Pre,
}

// knownPre says which values of tokenizer.ggml.pre are known.
func knownPre(name string) string {
	names := slices.Sorted(maps.Keys(ggufPreTokenizers))[1:] // without ""
	if n := spelling.Nearest(name, names); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return fmt.Sprintf("%d are known, %s … %s; copy the original model's tokenizer.json beside the file, and name it as tokenizer_file in the model spec", len(names), names[0], names[len(names)-1])
}
