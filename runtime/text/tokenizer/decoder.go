package tokenizer

import (
	"fmt"
	"strings"
)

// A decodeStage is a stage of a decoder. Tokens flow through the stages in chunks, so
// that text is emitted as soon as later tokens cannot change it. Decode and Stream
// share this code.
type decodeStage interface {
	// push processes a chunk of a token; begin and end mark the token's first and last
	// chunk.
	push(text string, begin, end bool, out sink)
	// flush marks the end of the input.
	flush(out sink)
}

type sink func(text string, begin, end bool)

// stageMaker returns a stage with fresh state.
type stageMaker func() decodeStage

// buildDecoder returns the stages of a decoder; none for nil.
func buildDecoder(c *Component, depth int) ([]stageMaker, error) {
	if c == nil {
		return nil, nil
	}
	if depth > maxComponentDepth {
		return nil, fmt.Errorf("decoder: sequences nest deeper than %d", maxComponentDepth)
	}
	if c.Type == "Sequence" {
		var all []stageMaker
		for i := range c.Decoders {
			stages, err := buildDecoder(&c.Decoders[i], depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, stages...)
		}
		return all, nil
	}
	stage, err := buildStage(c)
	if err != nil {
		return nil, fmt.Errorf("decoder %s: %w", c.Type, err)
	}
	return []stageMaker{stage}, nil
}

func buildStage(c *Component) (stageMaker, error) {
	switch c.Type {
	case "ByteLevel":
		return func() decodeStage { return &byteLevelStage{} }, nil
	case "Fuse":
		return func() decodeStage { return &fuseStage{} }, nil
	case "ByteFallback":
		return func() decodeStage { return &byteFallbackStage{} }, nil
	case "Strip":
		if len([]rune(c.Content)) != 1 || c.Start < 0 || c.Stop < 0 {
			return nil, fmt.Errorf("content %q, start %d, stop %d: expected one character and counts from 0", c.Content, c.Start, c.Stop)
		}
		return func() decodeStage { return &stripStage{content: c.Content, start: c.Start, stop: c.Stop} }, nil
	case "Replace":
		r, err := newReplacer(c)
		if err != nil {
			return nil, err
		}
		return tokenMap(func(_ int, token string) string { return r.normalize(token) }), nil
	case "Metaspace":
		m, err := newMetaspace(c)
		if err != nil {
			return nil, err
		}
		return tokenMap(m.decode), nil
	case "WordPiece":
		prefix := "##"
		if c.Prefix != nil {
			prefix = *c.Prefix
		}
		cleanup := orTrue(c.Cleanup)
		return tokenMap(func(i int, token string) string { return decodeWordPiece(i, token, prefix, cleanup) }), nil
	case "BPEDecoder":
		suffix := "</w>"
		if c.Suffix != nil {
			suffix = *c.Suffix
		}
		return func() decodeStage { return &suffixStage{suffix: suffix} }, nil
	case "CTC":
		return newCTC(c), nil
	}
	return nil, fmt.Errorf("unknown type")
}

// decode replaces marks by spaces and removes them from the first token.
func (m *metaspace) decode(i int, token string) string {
	if i == 0 && !m.never {
		return strings.ReplaceAll(token, m.mark, "")
	}
	return strings.ReplaceAll(token, m.mark, " ")
}

func decodeWordPiece(i int, token, prefix string, cleanup bool) string {
	if i > 0 {
		if rest, ok := strings.CutPrefix(token, prefix); ok {
			token = rest
		} else {
			token = " " + token
		}
	}
	if cleanup {
		token = wordPieceCleanup.apply(token)
	}
	return token
}

// replacements are applied one after another to the whole string.
type replacements [][2]string

func (r replacements) apply(s string) string {
	for _, pair := range r {
		s = strings.ReplaceAll(s, pair[0], pair[1])
	}
	return s
}

var (
	// wordPieceCleanup is the cleanup of the WordPiece decoder.
	wordPieceCleanup = replacements{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	}
	// spaceCleanup is clean_up_tokenization_spaces of transformers.
	spaceCleanup = replacements{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	}
)
