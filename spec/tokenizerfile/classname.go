package tokenizerfile

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// modelClasses maps the model_type of config.json to a tokenizer class, for folders
// without a class in their tokenizer configuration. It lists only classes that
// cannot be derived from the files.
var modelClasses = map[string]string{
	"albert": "AlbertTokenizer", "nystromformer": "AlbertTokenizer", "yoso": "AlbertTokenizer",
	"bert-generation": "BertGenerationTokenizer",
	"big_bird":        "BigBirdTokenizer",
	"camembert":       "CamembertTokenizer",
	"gemma":           "GemmaTokenizer", "gemma2": "GemmaTokenizer", "gemma3": "GemmaTokenizer", "gemma3_text": "GemmaTokenizer",
	"recurrent_gemma": "GemmaTokenizer", "t5gemma": "GemmaTokenizer",
	"mbart": "MBartTokenizer", "mbart50": "MBart50Tokenizer",
	"mpnet": "MPNetTokenizer",
	"nllb":  "NllbTokenizer", "nllb-moe": "NllbTokenizer",
	"pegasus": "PegasusTokenizer", "pegasus_x": "PegasusTokenizer", "bigbird_pegasus": "PegasusTokenizer",
	"gpt2": "GPT2Tokenizer", "gpt_neo": "GPT2Tokenizer", "gptj": "GPT2Tokenizer",
	"roberta": "RobertaTokenizer", "bart": "BartTokenizer", "led": "LEDTokenizer", "longformer": "LongformerTokenizer", "mvp": "MvpTokenizer",
	"plbart":  "PLBartTokenizer",
	"rembert": "RemBertTokenizer",
	"t5":      "T5Tokenizer", "mt5": "MT5Tokenizer", "umt5": "T5Tokenizer", "longt5": "T5Tokenizer", "switch_transformers": "T5Tokenizer", "pix2struct": "T5Tokenizer",
	"xlm-roberta": "XLMRobertaTokenizer", "xlm-roberta-xl": "XLMRobertaTokenizer", "xmod": "XLMRobertaTokenizer", "kosmos-2": "XLMRobertaTokenizer", "metaclip_2": "XLMRobertaTokenizer",

	"barthez": "BarthezTokenizer", "bartpho": "BartphoTokenizer", "cpm": "CpmTokenizer", "ernie_m": "ErnieMTokenizer",
	"fnet": "FNetTokenizer", "gpt-sw3": "GPTSw3Tokenizer", "layoutxlm": "LayoutXLMTokenizer", "reformer": "ReformerTokenizer",
	"seamless_m4t": "SeamlessM4TTokenizer", "seamless_m4t_v2": "SeamlessM4TTokenizer", "siglip": "SiglipTokenizer",
	"speecht5": "SpeechT5Tokenizer", "udop": "UdopTokenizer", "xglm": "XGLMTokenizer", "xlm-prophetnet": "XLMProphetNetTokenizer",
	"xlnet": "XLNetTokenizer",
}

// otherClasses use other layouts of a SentencePiece model's pieces. Reading them as
// another class would return wrong ids.
var otherClasses = []string{
	"BarthezTokenizer", "BartphoTokenizer", "CpmTokenizer", "DebertaV2Tokenizer", "ErnieMTokenizer", "FNetTokenizer",
	"GPTSw3Tokenizer", "LayoutXLMTokenizer", "ReformerTokenizer", "SeamlessM4TTokenizer", "SiglipTokenizer",
	"SpeechT5Tokenizer", "UdopTokenizer", "XGLMTokenizer", "XLMProphetNetTokenizer", "XLNetTokenizer",
}

func refuseClass(name string) error {
	return fmt.Errorf("tokenizer class %s cannot be read from a SentencePiece model alone; add the tokenizer.json that transformers writes with %sFast.from_pretrained(…).save_pretrained(…)", name, name)
}

// unnamedClass returns an error for a file that several classes use with the same
// piece ids but different special tokens.
func unnamedClass(class string) error {
	said := "no file names the tokenizer class"
	if class != "" {
		said = fmt.Sprintf("unknown tokenizer class %s", class)
	}
	return fmt.Errorf(`%s, and XLM-RoBERTa, CamemBERT, mBART, NLLB and PLBART all use this file; name the class in tokenizer_config.json, such as {"tokenizer_class": "XLMRobertaTokenizer"}, or add tokenizer.json to the folder`, said)
}

// classOfModel returns the tokenizer class that config.json names, or else that of
// its model type; "" if neither is known. It ignores a file that is not JSON,
// because the readers of the model report that.
func classOfModel(data []byte) string {
	var model struct {
		Class string `json:"tokenizer_class"`
		Type  string `json:"model_type"`
	}
	if len(data) == 0 || json.Unmarshal(data, &model) != nil {
		return ""
	}
	if model.Class != "" {
		return model.Class
	}
	return modelClasses[model.Type]
}

// configured returns the class with the settings of a configuration applied.
func (s spClass) configured(c *hfConfig) spClass {
	if s.joined && c.LanguageCodes == "multi" {
		s.languages, s.source, s.mask = "plbart_multi", "__en_XX__", false
	}
	if s.joined {
		c.SrcLang, c.TgtLang = s.language(c.SrcLang), s.language(c.TgtLang)
		if c.CleanUp == nil {
			c.CleanUp = ptr(true)
		}
	}
	return s
}

// language returns the token of a language. PLBART's configurations may omit its
// underscores.
func (s spClass) language(code string) string {
	marked := "__" + code + "__"
	if s.joined && slices.Contains(languageCodes["plbart_multi"], marked) {
		return marked
	}
	return code
}

// trailing returns the special tokens after the pieces if no configuration lists them.
func (s spClass) trailing(c *hfConfig) []tokenizer.AddedToken {
	var out []tokenizer.AddedToken
	if len(c.added) > 0 {
		return out
	}
	for _, code := range languageCodes[s.languages] {
		out = append(out, tokenizer.AddedToken{Content: code, Special: true})
	}
	for _, text := range s.unused {
		out = append(out, tokenizer.AddedToken{Content: text, Special: true})
	}
	for i := range s.extra(c) {
		out = append(out, tokenizer.AddedToken{Content: fmt.Sprintf("<extra_id_%d>", i), Special: true})
	}
	return out
}

// extra returns the number of <extra_id_N> tokens.
func (s spClass) extra(c *hfConfig) int {
	if c.ExtraIDs != nil && s.extraIDs > 0 {
		return min(max(*c.ExtraIDs, 0), 10000)
	}
	return s.extraIDs
}

// fromLibrary returns the definition of a class that encodes and decodes with the
// SentencePiece library.
func (s spClass) fromLibrary(m *spModel, c *hfConfig) *tokenizer.Definition {
	vocab, _ := s.vocab(m, c)
	d := &tokenizer.Definition{
		Decoder: &tokenizer.Component{Type: "SentencePiece"},
		Model:   tokenizer.Model{Type: "SentencePiece", Vocab: vocab, UnkToken: ptr(m.UnkPiece)},
		Added:   s.trailing(c),
	}
	m.define(&d.Model)
	d.Model.SentencePiece.Joined = s.joined
	return d
}
