// Package chat turns conversations into prompts and generated text back into
// messages. A model's template is written in Jinja, as tokenizer_config.json
// and GGUF files carry it, or in the brace language of Inferflow; a Template
// renders either. A Reader reads what the model answers: text, reasoning and
// calls of tools, as they come.
package chat
