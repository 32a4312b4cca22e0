package tokenizer

import "fmt"

// pairTemplate is the layout of two texts: fixed tokens and the positions of the texts,
// each with the segment (token type) of its ids.
type pairTemplate []pairPart

type pairPart struct {
	ids      []int32
	sequence byte // 'A', 'B', or 0 for ids
	typeID   int32
}

// buildPair returns the layout of pairs; nil concatenates the two texts.
func buildPair(c *Component, depth int) (pairTemplate, error) {
	if c == nil || depth > maxComponentDepth {
		return nil, nil
	}
	switch c.Type {
	case "Sequence":
		for i := range c.Processors {
			if p, err := buildPair(&c.Processors[i], depth+1); p != nil || err != nil {
				return p, err
			}
		}
	case "BertProcessing", "RobertaProcessing":
		cls, sep := []int32{c.Cls.ID}, []int32{c.Sep.ID}
		if c.Type == "BertProcessing" {
			return pairTemplate{{ids: cls}, {sequence: 'A'}, {ids: sep}, {sequence: 'B', typeID: 1}, {ids: sep, typeID: 1}}, nil
		}
		return pairTemplate{{ids: cls}, {sequence: 'A'}, {ids: sep}, {ids: sep}, {sequence: 'B'}, {ids: sep}}, nil
	case "TemplateProcessing":
		return c.pairParts()
	}
	return nil, nil
}

func (c *Component) pairParts() (pairTemplate, error) {
	var out pairTemplate
	layout := c.Pair
	for _, t := range c.Single {
		if len(c.Pair) == 0 { // B follows A directly
			layout = append(layout, t)
			if t.Sequence != nil {
				layout = append(layout, TemplatePiece{Sequence: &TemplateRef{ID: "B"}})
			}
		}
	}
	for i, t := range layout {
		switch {
		case t.Sequence != nil && (t.Sequence.ID == "A" || t.Sequence.ID == "B"):
			out = append(out, pairPart{sequence: t.Sequence.ID[0], typeID: int32(t.Sequence.TypeID)})
		case t.SpecialToken != nil:
			token, ok := c.SpecialTokens[t.SpecialToken.ID]
			if !ok {
				return nil, fmt.Errorf("post_processor: template token %q is not among special_tokens", t.SpecialToken.ID)
			}
			out = append(out, pairPart{ids: token.IDs, typeID: int32(t.SpecialToken.TypeID)})
		default:
			return nil, fmt.Errorf("post_processor: element %d of the pair template is neither a special token nor A or B", i)
		}
	}
	return out, nil
}

// A PairLimit bounds the work for a pair of untrusted texts. The zero value sets no
// limit.
type PairLimit struct {
	Limit      // of each text, and of the pair with its special tokens; Cut shortens the longer text until the pair fits
	Second int // maximum tokens of the second text, which is shortened; 0: none
}

// EncodePair encodes two texts, such as question and answer, as one list of ids with
// the special tokens of the post-processor. typeIDs holds the segment of each id. It
// returns ErrLong for a pair beyond the limit.
func (t *Tokenizer) EncodePair(a, b string, l PairLimit) (ids, typeIDs []int32, err error) {
	template := t.pair
	if template == nil {
		template = pairTemplate{{sequence: 'A'}, {sequence: 'B', typeID: 1}}
	}
	var texts [2][]int32
	for i, text := range []string{a, b} {
		one := l.Limit
		if i == 1 && l.Second > 0 && (one.Tokens == 0 || l.Second <= one.Tokens) {
			one.Tokens, one.Cut = l.Second, true
		}
		if texts[i], err = t.EncodeWithin(text, false, one); err != nil {
			return nil, nil, err
		}
	}
	if l.Cut && l.Tokens > 0 {
		template.fit(&texts, l.Tokens)
	}
	for _, p := range template {
		part := p.ids
		if p.sequence != 0 {
			part = texts[p.sequence-'A']
		}
		ids = append(ids, part...)
		for range part {
			typeIDs = append(typeIDs, p.typeID)
		}
	}
	if l.Tokens > 0 && len(ids) > l.Tokens {
		return nil, nil, fmt.Errorf("%w: %d tokens, at most %d are allowed", ErrLong, len(ids), l.Tokens)
	}
	return ids, typeIDs, nil
}

// fit shortens texts so that a pair has at most n tokens: the longer one, and both if the
// shorter one takes more than half. Hugging Face calls it longest_first.
func (p pairTemplate) fit(texts *[2][]int32, n int) {
	for _, part := range p {
		n -= len(part.ids)
	}
	short, long := &texts[0], &texts[1]
	if len(*short) > len(*long) {
		short, long = long, short
	}
	if n = max(n, 0); len(*short)+len(*long) <= n {
		return
	}
	*short = (*short)[:min(len(*short), n/2)]
	*long = (*long)[:n-len(*short)]
}
