package chat

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Templates are the chat templates of a compiled model.
type Templates struct {
	Name       string         // name of the model
	Chat       string         // from the model spec, else from the tokenizer or GGUF file; "": none
	Tools      string         // for conversations with tools; "": the same
	Generation map[string]any // generation_config.json, which gives special tokens by id
}

// Open returns the template of a compiled model. choice is the user's choice, the name
// of a built-in template or the text of a template; "" selects the model's own.
func Open(m Templates, tok *tokenizer.Tokenizer, choice string) (*Template, error) {
	tokens := TokensOf(tok)
	tokens.User, tokens.Assistant = generationToken(m, tok, "user_token_id"), generationToken(m, tok, "assistant_token_id")
	if choice != "" {
		return Parse(choice, tokens)
	}
	if m.Chat == "" {
		return nil, fmt.Errorf("%s has no chat template; choose one of: %s", m.Name, strings.Join(Names(), ", "))
	}
	t, err := Parse(m.Chat, tokens)
	if err != nil || m.Tools == "" {
		return t, err
	}
	tools, err := Parse(m.Tools, tokens)
	if err != nil {
		return nil, fmt.Errorf("tool template: %w", err)
	}
	return t.WithTools(tools), nil
}

// generationToken returns the text of a token that generation_config.json gives by id.
func generationToken(m Templates, tok *tokenizer.Tokenizer, key string) string {
	id, ok := m.Generation[key].(float64)
	if !ok || id != float64(int32(id)) {
		return ""
	}
	return tok.Token(int32(id))
}
