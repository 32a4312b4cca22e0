package tokenizerfile

import "github.com/iflowc/iflowc/runtime/text/tokenizer"

// special sets the special tokens.
func (v *ggufVocab) special(d *tokenizer.Definition) {
	d.Config.Special = map[string]string{}
	for role, key := range map[string]string{
		"bos": "bos", "eos": "eos", "unk": "unknown", "sep": "seperator", "pad": "padding", "cls": "cls", "mask": "mask",
	} {
		if token := v.named(key); token != "" {
			d.Config.Special[role] = token
		}
	}
	for _, key := range []string{"eot", "eom"} {
		if id, ok := v.reader.id("tokenizer.ggml." + key + "_token_id"); ok && int(id) < len(v.tokens) {
			d.Config.ExtraEOS = append(d.Config.ExtraEOS, id)
		}
	}
	d.Config.ChatTemplate = v.reader.text("tokenizer.chat_template")
}

// named returns the token of the first of some keys that the file has; "": none.
func (v *ggufVocab) named(keys ...string) string {
	for _, key := range keys {
		if id, ok := v.reader.id("tokenizer.ggml." + key + "_token_id"); ok && int(id) < len(v.tokens) {
			return v.tokens[id]
		}
	}
	return ""
}

// addTokens makes control and user-defined tokens matchable in text. The file does
// not state which control tokens strip adjacent spaces.
func (v *ggufVocab) addTokens(d *tokenizer.Definition) {
	named := map[string]bool{}
	for _, t := range d.Config.Special {
		named[t] = true
	}
	for i, t := range v.tokens {
		kind := v.kind(i)
		control := kind == ggufControl || kind == ggufUnknown || (len(v.types) == 0 && named[t])
		if t != "" && (control || kind == ggufUserDefined) && len(t) <= tokenizer.MaxAddedToken {
			d.Added = append(d.Added, tokenizer.AddedToken{ID: int32(i), Content: t, Special: control})
		}
	}
}

// infill sets the format of infill prompts. Older files name its tokens without "fim_".
func (v *ggufVocab) infill(d *tokenizer.Definition) {
	setInfill(d, tokenizer.InfillFormat{
		Prefix: v.named("fim_pre", "prefix"), Suffix: v.named("fim_suf", "suffix"), Middle: v.named("fim_mid", "middle"),
		Repo: v.named("fim_rep"), File: v.named("fim_sep"), Ends: []string{v.named("fim_pad")},
	})
}
