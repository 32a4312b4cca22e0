package tokenizerfile

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// infillFormats are the tokens of infill prompts in the files of published models.
var infillFormats = []tokenizer.InfillFormat{
	{Prefix: "<|fim_prefix|>", Suffix: "<|fim_suffix|>", Middle: "<|fim_middle|>"}, // Qwen2.5-Coder, CodeGemma
	{Prefix: "<fim_prefix>", Suffix: "<fim_suffix>", Middle: "<fim_middle>"},       // StarCoder, Granite
	{Prefix: "<fim-prefix>", Suffix: "<fim-suffix>", Middle: "<fim-middle>"},       // SantaCoder
	{Prefix: "<｜fim▁begin｜>", Suffix: "<｜fim▁hole｜>", Middle: "<｜fim▁end｜>"},       // DeepSeek-Coder
	{Prefix: "▁<PRE>", Suffix: "▁<SUF>", Middle: "▁<MID>"},                         // CodeLlama
	{Prefix: "<PRE>", Suffix: "<SUF>", Middle: "<MID>"},
	{Prefix: "<|code_prefix|>", Suffix: "<|code_suffix|>", Middle: "<|code_middle|>"},                 // GLM-4.5
	{Prefix: "<|prefix|>", Suffix: "<|suffix|>", Middle: "<|middle|>"},                                // Falcon-H1
	{Prefix: "<[fim-prefix]>", Suffix: "<[fim-suffix]>", Middle: "<[fim-middle]>", SuffixFirst: true}, // Seed-Coder
	{Prefix: "[PREFIX]", Suffix: "[SUFFIX]", SuffixFirst: true},                                       // Codestral
}

// Tokens that published models of these formats may also have, best first: those in front
// of the name of a repository and of a file, and those at the end of a text.
var (
	infillRepos = []string{"<|repo_name|>", "<repo_name>", "<reponame>"}
	infillFiles = []string{"<|file_sep|>", "<file_sep>", "<filename>"}
	infillEnds  = []string{"<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<|file_separator|>", "<|endoftext|>", "▁<EOT>", "<EOT>", "<|EOT|>"}
)

// setInfill sets the format of infill prompts from the tokens that a file names, or else
// from the spellings of its added tokens. Few files name any.
func setInfill(d *tokenizer.Definition, named tokenizer.InfillFormat) {
	known := map[string]bool{"": true}
	for _, t := range d.Added {
		known[t.Content] = true
	}
	f, given := named, named.Prefix != "" && named.Suffix != ""
	at := slices.IndexFunc(infillFormats, func(f tokenizer.InfillFormat) bool {
		if given {
			return f.Prefix == named.Prefix
		}
		return known[f.Prefix] && known[f.Suffix] && known[f.Middle]
	})
	switch {
	case at >= 0 && given:
		f.SuffixFirst = infillFormats[at].SuffixFirst
	case at >= 0:
		f = infillFormats[at]
	case !given:
		return
	}
	first := func(have string, list []string) string {
		if i := slices.IndexFunc(list, func(token string) bool { return known[token] }); have == "" && i >= 0 {
			return list[i]
		}
		return have
	}
	f.Repo, f.File = first(f.Repo, infillRepos), first(f.File, infillFiles)
	for _, token := range infillEnds {
		if known[token] {
			f.Ends = append(f.Ends, token)
		}
	}
	f.Ends = slices.DeleteFunc(f.Ends, func(token string) bool { return token == "" })
	d.Config.Infill = &f
}
