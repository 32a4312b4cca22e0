//go:build unix

package app

import (
	"errors"
	"strings"
)

type tokenizeCmd struct {
	Text      *string `arg:"" optional:"" help:"The text."`
	File      string  `short:"f" placeholder:"FILE" type:"path" help:"A file with the text, byte for byte."`
	NoSpecial bool    `help:"Leave out the special tokens that the model puts around a text."`
	JSON      bool    `name:"json" help:"Accepted for uniformity: the output is always JSON."`
}

// Run prints {"ids":[…],"tokens":["…"]}.
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
	}{append([]int32{}, t.Encode(text, !c.NoSpecial)...), []string{}}
	for _, id := range out.IDs {
		out.Tokens = append(out.Tokens, t.Token(id))
	}
	return writeJSON(m.Stdout, out)
}

type detokenizeCmd struct {
	IDs         []string `arg:"" name:"ids" sep:"none" help:"Token ids: 1,2,3."`
	SkipSpecial bool     `help:"Leave out special tokens."`
	JSON        bool     `name:"json" help:"Accepted for uniformity: the output is always JSON."`
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
	return writeJSON(m.Stdout, struct {
		Text string `json:"text"`
	}{t.Decode(ids, c.SkipSpecial)})
}
