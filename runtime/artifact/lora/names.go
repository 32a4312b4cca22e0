package lora

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A Names finds a model's matrices by the names in adapters.
type Names struct {
	known map[string]bool
	byEnd map[string][]string // by the name's end from the part before the layer's number on
}

// NewNames returns an index of the names of matrices, without ".weight".
func NewNames(names []string) *Names {
	n := &Names{known: map[string]bool{}, byEnd: map[string][]string{}}
	for _, name := range names {
		if !n.known[name] {
			n.known[name] = true
			n.byEnd[endOf(name)] = append(n.byEnd[endOf(name)], name)
		}
	}
	return n
}

// Find returns the model's name of an adapter's matrix. Models are saved with or without
// a prefix, such as "model." or "transformer.": if the name itself is unknown, Find
// returns the only name that agrees with the most of its last parts, at least from the
// part before the layer's number on. Of names without a number, one must end with the
// other.
func (n *Names) Find(name string) (string, error) {
	if n.known[name] {
		return name, nil
	}
	if tower := towerOf(name); tower != "" {
		return "", fmt.Errorf("the adapter changes %q, a matrix of the model's %s part; iflowc compiles the text model: train an adapter of its layers alone", name, tower)
	}
	most, best, second := 0, "", ""
	for _, other := range n.byEnd[endOf(name)] {
		switch same := commonEnd(name, other); {
		case same > most:
			most, best, second = same, other, ""
		case same == most:
			second = other
		}
	}
	switch {
	case most == 0:
		return "", fmt.Errorf("the adapter changes %q, %s%s", name, whyMissing(name), n.nearest(name))
	case second != "":
		return "", fmt.Errorf("the adapter changes %q, which can be %q or %q of the model; rename its tensors", name, best, second)
	}
	return best, nil
}

// towerOf returns which part of a multimodal model besides the text model a name belongs to.
func towerOf(name string) string {
	for _, word := range []string{"vision", "visual", "audio"} {
		if strings.Contains(strings.ToLower(name), word) {
			return word
		}
	}
	return ""
}

// endOf returns the end of a name from the part before the layer's number on. A name
// without a number is its own end, without what precedes its last part.
func endOf(name string) string {
	parts := strings.Split(name, ".")
	at := slices.IndexFunc(parts, isNumber)
	if at < 0 {
		at = len(parts)
	}
	return strings.Join(parts[max(0, at-1):], ".")
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// commonEnd returns how many of the last parts of two names agree: 0 if these are too few
// to take one for the other.
func commonEnd(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	n := 0
	for n < min(len(x), len(y)) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	if n < min(len(x), len(y)) && !slices.ContainsFunc(x, isNumber) {
		return 0
	}
	return n
}

// whyMissing explains why a model has no matrix of a name that adapters could change.
func whyMissing(name string) string {
	switch {
	case strings.Contains(name, "expert") || strings.HasSuffix(name, "_exps"):
		return "a matrix of experts, which adapters cannot change at run time; if each expert is a tensor of its own, merge the adapter with iflowc compile --merge-lora"
	case slices.ContainsFunc([]string{"embed", "wte", "wpe", "token_embd"}, func(s string) bool { return strings.Contains(name, s) }):
		return "an embedding: " + reasonEmbedding
	}
	return "which is no matrix of this model that adapters can change; is the adapter for another model?"
}

func (n *Names) nearest(name string) string {
	names := make([]string, 0, len(n.known))
	for known := range n.known {
		names = append(names, known)
	}
	slices.Sort(names) // of equally near names, always the same one
	if near := spelling.Nearest(name, names); near != "" {
		return fmt.Sprintf(" The nearest name is %q.", near)
	}
	return ""
}
