//go:build unix

package cli

import (
	"errors"

	"github.com/iflowc/iflowc/runtime/engine/pooling"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A pairEncoder encodes pairs of texts for a model that classifies them.
type pairEncoder struct {
	tok      *tokenizer.Tokenizer
	typed    bool           // the model has token types
	template *chat.Template // of a model that scores by the next token; nil: the tokenizer's own layout of pairs
	before   []chat.Message // in front of the pair in the template
}

// pairs returns the encoder for pairs of texts.
func (m *model) pairs() (*pairEncoder, error) {
	tok, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	p := &pairEncoder{tok: tok, typed: m.manifest.TokenTypes >= 2}
	if m.manifest.Score == nil || m.manifest.Template == "" {
		return p, nil
	}
	if p.template, err = chat.Open(m.bin.Templates(), tok, ""); err != nil {
		return nil, wrong(err)
	}
	prompt, err := pooling.Prompt(m.manifest, "")
	if prompt != "" {
		p.before = []chat.Message{{Role: "system", Content: prompt}}
	}
	return p, err
}

// encode returns the tokens of a pair of texts, and their types if the model has any. A
// model that scores by the next token gets the texts as messages of the roles query and
// document, as sentence-transformers passes them; special tokens in them stay text.
func (p *pairEncoder) encode(query, document string, within tokenizer.PairLimit) (ids, types []int32, err error) {
	if p.template != nil {
		ids, err = p.render(query, document, within)
		return ids, nil, err
	}
	if ids, types, err = p.tok.EncodePair(query, document, within); !p.typed {
		types = nil
	}
	return ids, types, err
}

// render returns the tokens of a pair in the chat template.
func (p *pairEncoder) render(query, document string, within tokenizer.PairLimit) ([]int32, error) {
	if within.Cut {
		return nil, wrong(errors.New("a pair in a chat template cannot be shortened; limit the documents' tokens instead (max_tokens_per_doc)"))
	}
	if within.Second > 0 {
		cut := tokenizer.Limit{Bytes: within.Bytes, Tokens: within.Second, Cut: true, Tick: within.Tick}
		ids, err := p.tok.EncodeWithin(document, false, cut)
		if err != nil {
			return nil, err
		}
		if len(ids) == within.Second {
			document = p.tok.Decode(ids, false)
		}
	}
	messages := append(p.before[:len(p.before):len(p.before)], chat.Message{Role: "query", Content: query}, chat.Message{Role: "document", Content: document})
	prompt, err := p.template.Encode(p.tok, messages, chat.RenderOptions{AddGenerationPrompt: true, Limit: within.Limit})
	if err != nil {
		return nil, wrong(err)
	}
	return prompt.IDs, nil
}
