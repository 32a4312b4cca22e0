package spec

import (
	"fmt"
	"maps"
)

// Hyper holds sizes of a model.
type Hyper struct {
	Hidden     int // width of the residual stream
	Layers     int
	Vocab      int  // token ids that may be sampled
	Rows       int  // rows of the embedding matrix, at least Vocab
	MaxContext int  // positions that the model supports; 0: unknown
	Grows      bool // rope adapts to sequences of any length, so that MaxContext does not limit them
}

// The modules that compute the sizes of a stack: by its configuration, and by the table of the
// embeddings of the last stack.
const (
	sizesModule      = "sizes"
	vocabularyModule = "vocabulary"
)

// stacks returns the stacks of layers of the network, in the order of execution, by the first
// part of their tensors' standard names.
func (n *Network) stacks() (out []string) {
	if n.encodes() {
		out = append(out, "enc")
	}
	if n.decodes() {
		out = append(out, "dec")
	}
	return out
}

// findSizes adds the sizes that a module computes of each of some stacks.
func (m *Model) findSizes(module string, stacks []string) error {
	for _, std := range stacks {
		l := newLowerer(m)
		results, err := l.call(module, std, nil)
		if err != nil {
			return l.located(err)
		}
		found := map[string]any{}
		rows, _ := results[0].([]any)
		for _, r := range rows {
			if row, _ := r.([]any); len(row) > 1 {
				name := fmt.Sprint(row[0])
				found[name], m.sizeKeys[name] = row[1], texts(row[2:])
			}
		}
		for _, to := range m.Net.stacks() {
			if m.sizes[to] == nil {
				m.sizes[to] = map[string]any{}
			}
			if to == std || module == vocabularyModule {
				maps.Copy(m.sizes[to], found)
			}
		}
	}
	m.Hyper = Hyper{m.size("hidden"), m.size("layers"), m.size("vocab"), m.size("vocab_rows"), m.size("max_context"), m.size("grows") == 1}
	return nil
}

// size returns a size of the last stack; 0 if it is unknown, or differs by layer.
func (m *Model) size(name string) int {
	stacks := m.Net.stacks()
	n, _ := m.sizes[stacks[len(stacks)-1]][name].(int)
	return n
}

// vocabulary adds to config.json what the model spec says of the vocabulary.
func (s *Spec) vocabulary() error {
	for _, k := range []struct {
		name string
		n    int
	}{{"vocab_size", s.InputVocabSize}, {"vocab_size", s.VocabSize}, {"padded_vocab_size", s.PaddedVocabSize}} {
		if k.n > 0 {
			s.Config[k.name] = float64(k.n)
		}
	}
	if s.PaddedVocabSize > 0 && s.PaddedVocabSize < s.VocabSize {
		return errAt(s.Pos("padded_vocab_size"), "padded_vocab_size: have %d, less than vocab_size %d", s.PaddedVocabSize, s.VocabSize)
	}
	return nil
}

// texts returns the words of a list.
func texts(list []any) (out []string) {
	for _, x := range list {
		out = append(out, fmt.Sprint(x))
	}
	return out
}
