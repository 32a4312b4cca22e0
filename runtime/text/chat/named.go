package chat

import (
	"slices"
	"strings"
)

// llama2Safety is the system prompt that Meta published with Llama 2 Chat; two of
// Inferflow's templates contain it.
const (
	llama2Safety = "You are a helpful, respectful and honest assistant. Always answer as helpfully as possible, while being safe.  " +
		"Your answers should not include any harmful, unethical, racist, sexist, toxic, dangerous, or illegal content. " +
		"Please ensure that your responses are socially unbiased and positive in nature."
	llama2Honesty = "If a question does not make any sense, or is not factually coherent, explain why instead of answering something not correct. " +
		"If you don't know the answer to a question, please don't share false information."
)

// A namedTemplate is a built-in template.
type namedTemplate struct{ name, source string }

// lines joins the lines of one of Inferflow's templates.
func lines(list ...string) string { return strings.Join(list, `{\n}`) }

// namedTemplates are Inferflow's templates by their names there, and Jinja templates of
// formats that many models share.
var namedTemplates = []namedTemplate{
	{"simple", lines("{query}", "{res_prefix}")},
	{"llama2_chat.std", lines("<s>[INST]", "{query}[/INST]")},
	{"llama2_chat.std.1", lines("<s>[INST]<<SYS>>", "{system_prompt}", "<</SYS>>", "{query}[/INST]")},
	{"llama2_chat.std.2", lines("<s>[INST]<<SYS>>", llama2Safety, llama2Honesty, "<</SYS>>", "{query}[/INST]")},
	{"llama2_chat.alt", lines("USER: {query}", "ASSISTANT: {res_prefix}")},
	{"llama2_chat.alt.2", lines("SYSTEM: "+llama2Safety+" "+llama2Honesty, "USER: {query}", "ASSISTANT: {res_prefix}")},
	{"vicuna-1.0", lines("### Human:", "{query}", "### Assistant:", "{res_prefix}")},
	{"vicuna-1.1", lines("USER: {query}", "ASSISTANT: {res_prefix}")},
	{"llama_cpp_t0", `\n\n### Instruction:\n\n{query}\n\n### Response:\n\n{res_prefix}`},
	{"llama_cpp_t1", `\n\n### Instruction:\n\n{_query}\n\n### Response:\n\n{res_prefix}`},
	{"baichuan2_chat", "{user_token}{query}{assistant_token}{res_prefix}"},
	{"chatml", `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}` +
		`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`},
	{"llama2", `{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}` +
		`{% set ns.system = '<<SYS>>\n' + m.content + '\n<</SYS>>\n\n' %}{% elif m.role == 'user' %}` +
		`{{ bos_token ~ '[INST] ' ~ ns.system ~ m.content.strip() ~ ' [/INST]' }}{% set ns.system = '' %}` +
		`{% else %}{{ ' ' ~ m.content.strip() ~ ' ' ~ eos_token }}{% endif %}{% endfor %}`},
	{"llama3", `{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}` +
		`{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}`},
	{"mistral", `{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.system = m.content + '\n\n' %}` +
		`{% elif m.role == 'user' %}{{ '[INST] ' + ns.system + m.content + ' [/INST]' }}{% set ns.system = '' %}{% else %}{{ ' ' ~ m.content ~ eos_token }}{% endif %}{% endfor %}`},
	{"gemma", `{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.system = m.content + '\n\n' %}{% else %}` +
		`{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' + ns.system + m.content | trim + '<end_of_turn>\n' }}{% set ns.system = '' %}{% endif %}{% endfor %}` +
		`{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}`},
	{"phi3", `{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}`},
	{"zephyr", `{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + eos_token + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}`},
}

// Names returns the names of the built-in templates.
func Names() (names []string) {
	for _, t := range namedTemplates {
		names = append(names, t.name)
	}
	return names
}

func builtin(name string) (source string, ok bool) {
	i := slices.IndexFunc(namedTemplates, func(t namedTemplate) bool { return t.name == name })
	if i < 0 {
		return "", false
	}
	return namedTemplates[i].source, true
}
