package tokenizerfile

import (
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A classTraits describes how a tokenizer class of transformers changes the
// contents of tokenizer.json when it loads the file.
type classTraits struct {
	// edges: the class rebuilds the post-processor from add_bos_token and
	// add_eos_token, with these defaults.
	edges          bool
	addBOS, addEOS bool
	// bert: the class overrides the BertNormalizer with its own settings.
	bert bool
}

var tokenizerClasses = map[string]classTraits{
	"LlamaTokenizer":       {edges: true, addBOS: true},
	"CodeLlamaTokenizer":   {edges: true, addBOS: true},
	"GemmaTokenizer":       {edges: true, addBOS: true},
	"CohereTokenizer":      {edges: true, addBOS: true},
	"GPTNeoXTokenizer":     {edges: true},
	"BertTokenizer":        {bert: true},
	"DistilBertTokenizer":  {bert: true},
	"ElectraTokenizer":     {bert: true},
	"MPNetTokenizer":       {bert: true},
	"MobileBertTokenizer":  {bert: true},
	"FunnelTokenizer":      {bert: true},
	"SqueezeBertTokenizer": {bert: true},
}

// adjust applies the changes that the tokenizer class makes to tokenizer.json.
func (c *hfConfig) adjust(d *tokenizer.Definition) {
	if !c.present {
		return
	}
	if p := d.PreTokenizer; p != nil && p.Type == "ByteLevel" {
		copied := *p
		copied.AddPrefixSpace = ptr(isTrue(c.AddPrefix))
		d.PreTokenizer = &copied
	}
	traits := tokenizerClasses[strings.TrimSuffix(c.Class, "Fast")]
	if traits.edges {
		c.edges(d, traits)
	}
	if n := d.Normalizer; traits.bert && n != nil && n.Type == "BertNormalizer" {
		copied := *n
		copied.Lowercase = ptr(orTrue(c.LowerCase))
		copied.StripAccents = c.StripAccents
		copied.HandleChineseChars = ptr(orTrue(c.ChineseChars))
		d.Normalizer = &copied
	}
}

// edges returns the post-processor that adds BOS in front and EOS at the end.
func (c *hfConfig) edges(d *tokenizer.Definition, traits classTraits) {
	bos, eos := traits.addBOS, traits.addEOS
	if c.AddBOS != nil {
		bos = *c.AddBOS
	}
	if c.AddEOS != nil {
		eos = *c.AddEOS
	}
	find := func(role string) (string, int32, bool) {
		t, ok := c.special[role]
		if !ok {
			return "", 0, false
		}
		for _, a := range d.Added {
			if a.Content == t.Content {
				return t.Content, a.ID, true
			}
		}
		for _, v := range d.Model.Vocab {
			if v.Token == t.Content {
				return t.Content, v.ID, true
			}
		}
		return "", 0, false
	}
	var before, after []edgeToken
	if text, id, ok := find("bos"); bos && ok {
		before = append(before, edgeToken{text, id})
	}
	if text, id, ok := find("eos"); eos && ok {
		after = append(after, edgeToken{text, id})
	}
	d.PostProcessor = templateOf(before, after)
	second := templateOf(before, after).Single
	for i := range second {
		if p := &second[i]; p.Sequence != nil {
			p.Sequence = &tokenizer.TemplateRef{ID: "B", TypeID: 1}
		} else {
			p.SpecialToken.TypeID = 1
		}
	}
	d.PostProcessor.Pair = slices.Concat(d.PostProcessor.Single, second)
}

// An edgeToken is a special token around a text.
type edgeToken struct {
	text string
	id   int32
}

// templateOf returns a TemplateProcessing with fixed tokens before and after the text.
func templateOf(before, after []edgeToken) *tokenizer.Component {
	c := &tokenizer.Component{Type: "TemplateProcessing", SpecialTokens: map[string]tokenizer.TemplateToken{}}
	put := func(tokens []edgeToken) {
		for _, t := range tokens {
			c.Single = append(c.Single, tokenizer.TemplatePiece{SpecialToken: &tokenizer.TemplateRef{ID: t.text}})
			c.SpecialTokens[t.text] = tokenizer.TemplateToken{IDs: []int32{t.id}}
		}
	}
	put(before)
	c.Single = append(c.Single, tokenizer.TemplatePiece{Sequence: &tokenizer.TemplateRef{ID: "A"}})
	put(after)
	return c
}

// withPair adds BERT's layout of pairs: text A and its following tokens in segment
// 0, text B and another copy of these tokens in segment 1.
func withPair(c *tokenizer.Component) *tokenizer.Component {
	c.Pair = append(c.Pair, c.Single...)
	c.Pair = append(c.Pair, tokenizer.TemplatePiece{Sequence: &tokenizer.TemplateRef{ID: "B", TypeID: 1}})
	after := false
	for _, p := range c.Single {
		if after {
			c.Pair = append(c.Pair, tokenizer.TemplatePiece{SpecialToken: &tokenizer.TemplateRef{ID: p.SpecialToken.ID, TypeID: 1}})
		}
		after = after || p.Sequence != nil
	}
	return c
}
