// Package chat converts conversations to prompts, and generated text back to messages.
// A model's chat template is written in Jinja, as in tokenizer_config.json and GGUF
// files, or in the brace language of Inferflow; a Template renders either. A Reader
// parses a model's answer incrementally into text, reasoning and tool calls.
package chat
