//go:build unix

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

type tokenizeCmd struct {
	Text      *string `arg:"" optional:"" help:"Text."`
	File      string  `short:"f" placeholder:"FILE" type:"path" help:"File with the text; its bytes are taken as they are."`
	Pair      *string `placeholder:"TEXT" help:"Second text of a pair; also prints token type ids."`
	NoSpecial bool    `help:"Leave out the special tokens around a text."`
	JSON      bool    `name:"json" help:"Accepted for uniformity; the output is always JSON."`
}

// Run prints {"ids":[…],"tokens":["…"]}, and for pairs "token_type_ids".
func (c *tokenizeCmd) Run(m *model) error {
	if (c.Text == nil) == (c.File == "") {
		return wrong(errors.New("expected a text or -f FILE"))
	}
	text := ""
	if c.Text != nil {
		text = *c.Text
	}
	text, err := readText(text, c.File)
	if err != nil {
		return err
	}
	t, err := m.tokenizer()
	if err != nil {
		return err
	}
	out := struct {
		IDs    []int32  `json:"ids"`
		Tokens []string `json:"tokens"`
		Types  []int32  `json:"token_type_ids,omitempty"`
	}{IDs: []int32{}, Tokens: []string{}}
	if c.Pair != nil {
		out.IDs, out.Types, err = t.EncodePair(text, *c.Pair, tokenizer.PairLimit{})
	} else {
		out.IDs = append(out.IDs, t.Encode(text, !c.NoSpecial)...)
	}
	if err != nil {
		return err
	}
	for _, id := range out.IDs {
		out.Tokens = append(out.Tokens, t.Token(id))
	}
	return writeJSON(m.Stdout, out)
}

type detokenizeCmd struct {
	IDs         []string `arg:"" name:"ids" sep:"none" help:"Token ids, such as 1,2,3."`
	SkipSpecial bool     `help:"Leave out special tokens."`
	JSON        bool     `name:"json" help:"Accepted for uniformity; the output is always JSON."`
}

// Run prints {"text":"…"}.
func (c *detokenizeCmd) Run(m *model) error {
	ids, err := parseIDs(strings.Join(c.IDs, ","))
	if err != nil {
		return err
	}
	t, err := m.tokenizer()
	if err != nil {
		return err
	}
	size := max(m.manifest.Vocab, t.Size()) // a model may have rows for tokens that do not exist
	for _, id := range ids {
		if int(id) >= size {
			return wrong(fmt.Errorf("token id %d: the vocabulary has %d tokens", id, size))
		}
	}
	return writeJSON(m.Stdout, struct {
		Text string `json:"text"`
	}{t.Decode(ids, c.SkipSpecial)})
}
