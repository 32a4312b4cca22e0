//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The models read text. In the newest message of the user, images and other media are
// refused. In earlier messages and in the results of tools a text stands for them, so a
// conversation that has them can go on. The same holds for what another service's own tools
// did.

// media are the parts of messages that are not text, by type, with what they are.
var media = map[string]string{
	"image": "image", "image_url": "image", "input_image": "image", "computer_screenshot": "image",
	"audio": "audio", "audio_url": "audio", "input_audio": "audio",
	"video": "video", "video_url": "video", "input_video": "video",
	"file": "file", "input_file": "file", "container_upload": "file", "document": "document",
}

// hosted returns what a block or an item is that a service's own tool left in the history,
// by its type: a call or a result. ok is false for other types.
func hosted(kind string) (word string, ok bool) {
	switch {
	case strings.HasSuffix(kind, "_tool_use"), strings.HasSuffix(kind, "_call"):
		return "tool call", true
	case strings.HasSuffix(kind, "_tool_result"), strings.HasSuffix(kind, "_call_output"):
		return "tool result", true
	}
	return "", false
}

// omitted returns the text that stands for a part.
func omitted(kind string) string { return "[" + kind + " omitted]" }

// An unread is an error for media in the newest message of the user; "": there are none,
// or there is an answer or a newer message.
type unread struct{ key, text string }

// err returns the error.
func (u unread) err() error {
	if u.text == "" {
		return nil
	}
	return invalid(u.key, "%s", u.text)
}

// text returns the text of a part, and whether it has one.
func (p *textPart) text() (text string, ok bool) {
	switch p.Type {
	case "text", "input_text", "output_text", "reasoning_text", "summary_text", "refusal":
		return p.Text + p.Refusal, true
	}
	return "", false
}

// A messageSource is the content of a document.
type messageSource struct {
	Type    string          `json:"type"`    // "text", "content"; the models do not read others
	Data    string          `json:"data"`    // of text
	Content json.RawMessage `json:"content"` // of content: a text or blocks
}

// UnmarshalJSON leaves out the source of a search result, which is a text.
func (s *messageSource) UnmarshalJSON(data []byte) error {
	type source messageSource
	if data[0] == '"' {
		return nil
	}
	return json.Unmarshal(data, (*source)(s))
}

// plain returns the text of a block that has one: of text, a document that is text, a
// result of a search, or the name of a tool. ok is false for other blocks.
func (b *messageBlock) plain() (text string, ok bool, err error) {
	word, hostedBlock := hosted(b.Type)
	switch {
	case b.Type == "text":
		return b.Text, true, nil
	case b.Type == "tool_reference":
		return b.Tool, true, nil
	case hostedBlock:
		return omitted(word), true, nil
	case b.Type == "search_result":
		text, err = blocksText(b.Content)
		if err != nil {
			return "", true, fmt.Errorf(".content%w", err)
		}
		return text, true, nil
	case b.Type == "document" && b.Source.Type == "text":
		return b.Source.Data, true, nil
	case b.Type == "document" && b.Source.Type == "content":
		text, err = blocksText(b.Source.Content)
		if err != nil {
			return "", true, fmt.Errorf(".source.content%w", err)
		}
		return text, true, nil
	}
	return "", false, nil
}
