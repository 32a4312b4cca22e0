package tokenizerfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// defaultSPClass returns the class for folders that name no known class.
func defaultSPClass(m *spModel) string {
	if m.Type == spBPE || m.ByteFallback {
		return "LlamaTokenizer"
	}
	return "T5Tokenizer"
}

// spLoader returns the loader of a folder with only a SentencePiece model.
func spLoader(file string) func(Files, *hfConfig) (*tokenizer.Definition, error) {
	return func(f Files, c *hfConfig) (*tokenizer.Definition, error) {
		m, err := parseSentencePiece(f[file])
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(c.Class, "Fast")
		class, ok := spClasses[name]
		if slices.Contains(otherClasses, name) {
			return nil, refuseClass(name)
		}
		if !ok && file == "sentencepiece.bpe.model" {
			return nil, unnamedClass(c.Class)
		}
		if !ok {
			name = defaultSPClass(m)
			class = spClasses[name]
		}
		if c.Offset != nil && class.offset > 0 {
			class.offset = min(max(*c.Offset, 2), 1000)
		}
		c.nameDefaults(name, m)
		class = class.configured(c)
		d := class.define(m, c)
		if class.library {
			d = class.fromLibrary(m, c)
		}
		c.markSpecial(d)
		ids := vocabMap(d.Model.Vocab)
		if traits := tokenizerClasses[name]; traits.edges {
			c.edges(d, traits)
			return d, nil
		}
		before, err := class.edges(class.before, c, ids)
		if err != nil {
			return nil, err
		}
		after, err := class.edges(class.after, c, ids)
		if err != nil {
			return nil, err
		}
		d.PostProcessor = class.template(before, after)
		return d, nil
	}
}

// nameDefaults sets special tokens that no configuration names: the defaults of the
// class, or else the usual ones of SentencePiece.
func (c *hfConfig) nameDefaults(class string, m *spModel) {
	c.nameRoles(spRoles[class], spClasses[class])
	defaults := map[string]string{"bos": "<s>", "eos": "</s>", "unk": m.UnkPiece, "pad": "<pad>"}
	have := map[string]bool{}
	for _, p := range m.Pieces {
		have[p.Text] = true
	}
	for role, token := range defaults {
		if _, ok := c.special[role]; !ok && have[token] && !c.present {
			c.special[role] = namedToken{AddedToken: tokenizer.AddedToken{Content: token, Special: true}}
		}
	}
}

// nameRoles sets special tokens of a class that no file names, and the matching of
// tokens that a file names without it.
func (c *hfConfig) nameRoles(roles map[string]string, class spClass) {
	for role, token := range roles {
		t, ok := c.special[role]
		if t.object || !ok && c.none[role] {
			continue
		}
		if ok {
			token = t.Content
		}
		mask, normal := role == "mask", slices.Contains(class.normalized, role)
		c.special[role] = namedToken{tokenizer.AddedToken{Content: token, Special: true, LStrip: mask, Normalized: normal}, mask || class.objects}
	}
}

// markSpecial copies the matching of a role's token, if it is set, to the model's
// user-defined or control piece with that role.
func (c *hfConfig) markSpecial(d *tokenizer.Definition) {
	for i := range d.Added {
		for _, t := range c.special {
			if a := &d.Added[i]; a.Content == t.Content && t.object {
				a.Special, a.LStrip, a.RStrip, a.SingleWord = true, t.LStrip, t.RStrip, t.SingleWord
			}
		}
	}
}

// edges returns the tokens of roles.
func (s spClass) edges(roles []string, c *hfConfig, ids map[string]int32) ([]edgeToken, error) {
	var out []edgeToken
	for _, role := range roles {
		token := c.special[role].Content
		if role == "lang" {
			token = cmp.Or(s.language(c.SrcLang), s.source)
		}
		id, ok := ids[token]
		for i, next := 0, int32(len(ids)); !ok && i < len(c.added); i++ {
			if c.added[i].Content == token {
				id, ok = max(c.added[i].ID, next), true
			}
		}
		if !ok && token != "" {
			return nil, fmt.Errorf("the token %q (%s) is not in the vocabulary", token, role)
		}
		if ok {
			out = append(out, edgeToken{token, id})
		}
	}
	return out, nil
}

// define returns the vocabulary, model and pipeline.
func (s spClass) define(m *spModel, c *hfConfig) *tokenizer.Definition {
	d := &tokenizer.Definition{}
	vocab, scores := s.vocab(m, c)
	d.Model = tokenizer.Model{Type: "Unigram", FuseUnk: true, Vocab: vocab, Scores: scores, ByteFallback: s.layout != layoutMetaspace}
	ids := vocabMap(vocab)
	if id, ok := ids[m.UnkPiece]; ok {
		d.Model.UnkID = ptr(int(id))
	}
	if m.Type == spBPE {
		d.Model.Type, d.Model.UnkToken, d.Model.UnkID = "BPE", ptr(m.UnkPiece), nil
		d.Model.Merges, d.Model.Scores = mergesFromScores(vocab, scores), nil
	}
	switch s.layout {
	case layoutMetaspace:
		s.metaspace(d, m, c)
	case layoutLlama:
		s.llama(d, c)
	case layoutGemma:
		blank, line := &tokenizer.Pattern{String: ptr(" ")}, &tokenizer.Pattern{String: ptr(tokenizer.Mark)}
		d.Normalizer = &tokenizer.Component{Type: "Replace", Pattern: blank, Content: tokenizer.Mark}
		d.PreTokenizer = &tokenizer.Component{Type: "Split", Pattern: blank, Behavior: "MergedWithPrevious"}
		d.Decoder = &tokenizer.Component{Type: "Sequence", Decoders: []tokenizer.Component{{Type: "Replace", Pattern: line, Content: " "}, {Type: "ByteFallback"}, {Type: "Fuse"}}}
	}
	d.Added = append(d.Added, s.trailing(c)...)
	for _, p := range m.Pieces {
		if p.Text != "" && (p.Type == tokenizer.PieceControl || p.Type == tokenizer.PieceUserDefined) {
			d.Added = append(d.Added, tokenizer.AddedToken{ID: ids[p.Text], Content: p.Text, Special: p.Type == tokenizer.PieceControl || slices.Contains(s.special, p.Text)})
		}
	}
	return d
}

func (s spClass) vocab(m *spModel, c *hfConfig) ([]tokenizer.Entry, []float64) {
	var vocab []tokenizer.Entry
	var scores []float64
	seen := map[string]bool{}
	add := func(text string, score float64) {
		if !seen[text] { // a duplicate piece keeps its first id
			vocab = append(vocab, tokenizer.Entry{Token: text, ID: int32(len(vocab))})
			scores = append(scores, score)
		}
		seen[text] = true
	}
	for _, text := range s.lead() {
		score := 0.0
		if strings.HasPrefix(text, "<unk") && text != "<unk>" {
			score = -100
		}
		add(text, score)
	}
	for _, p := range m.Pieces[min(s.skip, len(m.Pieces)):] {
		add(p.Text, s.score(p))
	}
	if s.layout == layoutGemma && !seen["\t"] { // early Gemma files have no piece for the tab
		for i := range vocab {
			if vocab[i].Token == "<0x09>" {
				vocab[i].Token, scores[i] = "\t", 0
			}
		}
	}
	for i := s.extra(c) - 1; i >= 0; i-- {
		add(fmt.Sprintf("<extra_id_%d>", i), 0)
	}
	if len(c.added) > 0 && !s.library { // the configuration lists the tokens after the pieces
		return vocab, scores
	}
	if s.mask && s.maskFirst {
		add("<mask>", 0)
	}
	for _, code := range languageCodes[s.languages] {
		add(code, 0)
	}
	if s.mask {
		add("<mask>", 0)
	}
	return vocab, scores
}

// metaspace sets the pipeline that normalizes spaces and splits at them.
func (s spClass) metaspace(d *tokenizer.Definition, m *spModel, c *hfConfig) {
	steps := []tokenizer.Component{{Type: "Strip", StripRight: true}, {Type: "Replace", Pattern: &tokenizer.Pattern{Regex: ptr(" {2,}")}, Content: tokenizer.Mark}}
	if len(m.Charsmap) > 0 {
		steps = append([]tokenizer.Component{{Type: "Precompiled", Charsmap: m.Charsmap}}, steps...)
	}
	d.Normalizer = &tokenizer.Component{Type: "Sequence", Normalizers: steps}
	if s.accents != accentsKept {
		d.Normalizer = s.tidy(m.Charsmap, c)
	}
	words := tokenizer.Component{Type: "Metaspace", Replacement: tokenizer.Mark, PrependScheme: c.prependScheme()}
	d.PreTokenizer, d.Decoder = &words, &words
	if s.offset > 0 {
		d.PreTokenizer = &tokenizer.Component{Type: "Sequence", Pretokenizers: []tokenizer.Component{{Type: "WhitespaceSplit"}, words}}
		for _, text := range s.lead()[2:] {
			d.Added = append(d.Added, tokenizer.AddedToken{Content: text, Special: true})
		}
	}
}

func (c *hfConfig) prependScheme() string {
	switch {
	case c.AddPrefix != nil && !*c.AddPrefix:
		return "never"
	case c.Legacy != nil && !*c.Legacy:
		return "first"
	}
	return "always"
}

// llama sets the pipeline that keeps spaces. Newer configurations ("legacy": false)
// add a leading space to the whole text, older ones to every segment of it.
func (s spClass) llama(d *tokenizer.Definition, c *hfConfig) {
	prefix := orTrue(c.AddPrefix)
	base := pieceDefinition(nil, prefix)
	d.Normalizer, d.Decoder = base.Normalizer, base.Decoder
	if c.Legacy != nil && !*c.Legacy {
		d.Normalizer = nil
		d.PreTokenizer = &tokenizer.Component{Type: "Metaspace", Replacement: tokenizer.Mark, PrependScheme: c.prependScheme(), Split: ptr(false)}
	}
}
