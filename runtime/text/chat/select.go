package chat

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Templates are what a compiled model carries of templates.
type Templates struct {
	Name       string         // the model's
	Chat       string         // the specification's, else that of the tokenizer's files or the GGUF file; "": none
	Tools      string         // the one for conversations with tools, where it is another
	Generation map[string]any // generation_config.json, which names tokens of roles by their ids
}

// Open gives the template of a compiled model. choice is what the user names:
// a built-in template, or a template's text; "" takes the model's own.
func Open(m Templates, tok *tokenizer.Tokenizer, choice string) (*Template, error) {
	tokens := TokensOf(tok)
	tokens.User, tokens.Assistant = generationToken(m, tok, "user_token_id"), generationToken(m, tok, "assistant_token_id")
	if choice != "" {
		return Parse(choice, tokens)
	}
	if m.Chat == "" {
		return nil, fmt.Errorf("%s has no chat template; name one: %s", m.Name, strings.Join(Names(), ", "))
	}
	t, err := Parse(m.Chat, tokens)
	if err != nil || m.Tools == "" {
		return t, err
	}
	tools, err := Parse(m.Tools, tokens)
	if err != nil {
		return nil, fmt.Errorf("template for tools: %w", err)
	}
	return t.WithTools(tools), nil
}

// generationToken spells a token that generation_config.json names by its id.
func generationToken(m Templates, tok *tokenizer.Tokenizer, key string) string {
	id, ok := m.Generation[key].(float64)
	if !ok || id != float64(int32(id)) {
		return ""
	}
	return tok.Token(int32(id))
}
