package tokenizerfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// An hfConfig is the contents of tokenizer_config.json, special_tokens_map.json,
// added_tokens.json and chat_template.jinja.
type hfConfig struct {
	present       bool
	Class         string                     `json:"tokenizer_class"`
	AddedDecoder  map[string]namedToken      `json:"added_tokens_decoder"`
	Additional    []json.RawMessage          `json:"additional_special_tokens"`
	Extra         json.RawMessage            `json:"extra_special_tokens"` // a list, or tokens by role
	AddBOS        *bool                      `json:"add_bos_token"`
	AddEOS        *bool                      `json:"add_eos_token"`
	AddPrefix     *bool                      `json:"add_prefix_space"`
	CleanUp       *bool                      `json:"clean_up_tokenization_spaces"`
	LowerCase     *bool                      `json:"do_lower_case"`
	KeepAccents   *bool                      `json:"keep_accents"`
	StripAccents  *bool                      `json:"strip_accents"`
	ChineseChars  *bool                      `json:"tokenize_chinese_chars"`
	ChatTemplate  json.RawMessage            `json:"chat_template"`
	SrcLang       string                     `json:"src_lang"`
	TgtLang       string                     `json:"tgt_lang"`
	LanguageCodes string                     `json:"language_codes"`
	SeparateVocab bool                       `json:"separate_vocabs"`
	Legacy        *bool                      `json:"legacy"`
	ExtraIDs      *int                       `json:"extra_ids"`
	Offset        *int                       `json:"offset"`
	Raw           map[string]json.RawMessage `json:"-"`

	special map[string]namedToken // by role
	none    map[string]bool       // roles that are explicitly null
	added   []namedToken          // tokens of AddedDecoder by id, then additional ones
}

// A namedToken is a token that a configuration names.
type namedToken struct {
	tokenizer.AddedToken
	object bool // its matching is set by a configuration or by the class
}

var specialRoles = []string{"bos", "eos", "unk", "sep", "pad", "cls", "mask"}

// readConfig reads the optional files beside the tokenizer.
func readConfig(f Files) (*hfConfig, error) {
	c := &hfConfig{special: map[string]namedToken{}, none: map[string]bool{}}
	if data := f["tokenizer_config.json"]; len(data) > 0 {
		c.present = true
		if err := json.Unmarshal(data, c); err != nil {
			return nil, wrap("tokenizer_config.json", err)
		}
		if err := json.Unmarshal(data, &c.Raw); err != nil {
			return nil, wrap("tokenizer_config.json", err)
		}
	}
	if c.Class == "" {
		c.Class = classOfModel(f["config.json"])
	}
	roles := map[string]json.RawMessage{}
	if data := f["special_tokens_map.json"]; len(data) > 0 {
		if err := json.Unmarshal(data, &roles); err != nil {
			return nil, wrap("special_tokens_map.json", err)
		}
	}
	for key, value := range c.Raw {
		said, ok := roles[key]
		if ok && len(c.AddedDecoder) == 0 && string(said) != "null" {
			continue // without added_tokens_decoder, special_tokens_map.json takes precedence
		}
		if !ok || string(value) != "null" {
			roles[key] = value
		}
	}
	for _, role := range specialRoles {
		c.none[role] = string(roles[role+"_token"]) == "null"
		if t, ok := readToken(roles[role+"_token"]); ok {
			c.special[role] = t
		}
	}
	if err := c.collectAdded(f["added_tokens.json"], roles["additional_special_tokens"]); err != nil {
		return nil, err
	}
	return c, c.readChatTemplate(f["chat_template.jinja"])
}

// readToken decodes "token" or {"content": "token", …}.
func readToken(data json.RawMessage) (namedToken, bool) {
	if len(data) == 0 || string(data) == "null" {
		return namedToken{}, false
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return namedToken{AddedToken: tokenizer.AddedToken{Content: text, Special: true}}, text != ""
	}
	t := namedToken{}
	err := json.Unmarshal(data, &t)
	t.Special, t.object = true, true
	return t, err == nil && t.Content != ""
}

func (c *hfConfig) collectAdded(extra []byte, additional json.RawMessage) error {
	for key, t := range c.AddedDecoder {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return fmt.Errorf("tokenizer_config.json: added_tokens_decoder: key %.20q is not an id", key)
		}
		t.ID = int32(id)
		c.added = append(c.added, t)
	}
	if len(c.AddedDecoder) == 0 && len(extra) > 0 {
		ids := map[string]int32{}
		if err := json.Unmarshal(extra, &ids); err != nil {
			return wrap("added_tokens.json", err)
		}
		named := map[string]bool{}
		for _, t := range c.special {
			named[t.Content] = true
		}
		for text, id := range ids { // special tokens are matched in the original text
			c.added = append(c.added, namedToken{AddedToken: tokenizer.AddedToken{ID: id, Content: text, Normalized: !named[text]}})
		}
	}
	slices.SortFunc(c.added, func(a, b namedToken) int {
		if a.ID != b.ID {
			return int(a.ID) - int(b.ID)
		}
		return strings.Compare(a.Content, b.Content)
	})
	var list []json.RawMessage
	if len(additional) > 0 && json.Unmarshal(additional, &list) == nil {
		c.Additional = list
	}
	if extra := c.extra(); len(extra) > 0 { // the newer name
		c.Additional = extra
	}
	return nil
}

// extra returns the extra special tokens; those by role are sorted by it.
func (c *hfConfig) extra() []json.RawMessage {
	var list []json.RawMessage
	var roles map[string]json.RawMessage
	if json.Unmarshal(c.Extra, &list) != nil && json.Unmarshal(c.Extra, &roles) == nil {
		for _, role := range slices.Sorted(maps.Keys(roles)) {
			list = append(list, roles[role])
		}
	}
	return list
}

func (c *hfConfig) readChatTemplate(jinja []byte) error {
	c.Raw = nil
	if len(jinja) > 0 {
		text, err := json.Marshal(string(jinja))
		c.ChatTemplate = text
		return err
	}
	return nil
}

// chatTemplate returns the chat template, or the one named "default" of a list.
func (c *hfConfig) chatTemplate() string {
	var text string
	if json.Unmarshal(c.ChatTemplate, &text) == nil {
		return text
	}
	var list []struct{ Name, Template string }
	if json.Unmarshal(c.ChatTemplate, &list) != nil {
		return ""
	}
	for _, t := range list {
		if t.Name == "default" {
			return t.Template
		}
	}
	return ""
}

// fill copies the special tokens, the template and the added tokens that the
// definition does not contain yet.
func (c *hfConfig) fill(d *tokenizer.Definition) {
	if d.Config.Special == nil {
		d.Config.Special = map[string]string{}
	}
	for role, t := range c.special {
		d.Config.Special[role] = t.Content
	}
	if text := c.chatTemplate(); text != "" {
		d.Config.ChatTemplate = text
	}
	d.Config.Target = c.TgtLang
	d.Config.CleanUp = d.Config.CleanUp || isTrue(c.CleanUp)
	named := map[string]bool{}
	for _, t := range c.special {
		named[t.Content] = true
	}
	known := map[string]bool{}
	for _, t := range d.Added {
		known[t.Content] = true
	}
	add := func(t namedToken) {
		t.Special = t.Special || named[t.Content]
		d.Added = append(d.Added, t.AddedToken)
		known[t.Content] = true
	}
	for _, t := range c.added {
		add(t)
	}
	for _, role := range specialRoles {
		if t, ok := c.special[role]; ok && !known[t.Content] {
			add(t)
		}
	}
	for _, raw := range c.Additional {
		if t, ok := readToken(raw); ok && !known[t.Content] {
			add(t)
		}
	}
}
