package compiler

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// templates sets the chat templates: the model spec's chat_template, else those
// of the model's files, which support tools, else the model spec's
// prompt_template.
func (m *Model) templates(man *manifest.Manifest, tok *tokenizer.Tokenizer) {
	s := m.Spec
	man.EncoderTemplate = s.EncoderInputTemplate
	if man.Template = s.ChatTemplate; man.Template != "" {
		return
	}
	named := m.namedTemplates()
	if man.Template = cmp.Or(tok.ChatTemplate(), named["default"]); man.Template != "" {
		man.ToolTemplate = named["tool_use"]
		return
	}
	man.Template = cmp.Or(named["tool_use"], s.PromptTemplate, s.DecoderInputTemplate)
}

// toolTemplateFiles are files of a model folder, besides tokenizer_config.json,
// that may contain its template for tools.
var toolTemplateFiles = []string{"additional_chat_templates/tool_use.jinja", "chat_templates/tool_use.jinja"}

// namedTemplates returns the templates by name of a model with several.
func (m *Model) namedTemplates() map[string]string {
	out := map[string]string{}
	if data, err := regular.ReadIn(m.Spec.ModelDir, "tokenizer_config.json", maxTokenizerFile); err == nil {
		var config struct {
			Templates json.RawMessage `json:"chat_template"`
		}
		var list []struct{ Name, Template string }
		if json.Unmarshal(data, &config) == nil && json.Unmarshal(config.Templates, &list) == nil {
			for _, t := range list {
				out[t.Name] = t.Template
			}
		}
	}
	for _, name := range toolTemplateFiles {
		data, err := regular.ReadIn(m.Spec.ModelDir, name, maxSideFile)
		switch {
		case err == nil:
			out["tool_use"] = string(data)
		case !errors.Is(err, fs.ErrNotExist):
			m.opt.notice("%v; the template for tools is not used", err)
		}
	}
	if text, ok := m.set.Meta()["tokenizer.chat_template.tool_use"].(string); ok && m.set.Format() == "gguf" {
		out["tool_use"] = text
	}
	return out
}
