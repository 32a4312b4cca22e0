package spec

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A Model is a resolved model spec: its sizes and tensors are known and consistent.
type Model struct {
	Spec   *Spec
	Net    *Network
	Hyper  Hyper        // of the decoder, or of the encoder if there is no decoder
	Unused []string     // stored tensors that no weight of the lowered module is made of; nil before it is lowered
	Medusa *MedusaHeads // nil: the model has none
	Draft  *DraftLayer  // nil: the model has none

	stored   tensor.DType              // type of the largest stored tensor
	tensors  map[string]Tensor         // by standard name
	declared map[string]declaration    // by weight of the lowered module
	names    map[site][]otherName      // of a layer's tensors
	sizes    map[string]map[string]any // by stack and name: int, or a list of them by layer
	sizeKeys map[string][]string       // keys of config.json that a size comes from
	namer    *lowerer                  // evaluates them
	used     map[string]bool           // stored names of tensors that its weights are made of; nil before the model is lowered

	ignored   []string // stored tensors that are ignored or replaced by tied weights
	unmatched []string // those that no rule maps to a standard name

	graph  []byte   // the module's text, if the model spec has a graph
	pinned []string // its weights that are declared as f32

	headers Headers // nil: modules read no values
}

// A Tensor is a stored tensor under a standard name.
type Tensor struct {
	File    string // its name in the file
	Pattern string // the name with {i}, {j} for the indices
	shared  string // the name with {j} only for the number of an expert or head: of a tensor that several layers read
	DType   tensor.DType
	Shape   []int
	Pos     Pos // position of the mapping in the model spec; zero for the built-in maps
}

// Resolve checks that every module value is supported, reads the sizes and maps
// every stored tensor to a standard name. Which tensors must be there, and which shapes they
// have, the modules say: see Lower.
func Resolve(s *Spec, h Headers) (*Model, error) {
	m := newModel(s)
	m.stored, m.headers = largestType(h), h
	stacks := m.Net.stacks()
	if err := m.findSizes(sizesModule, stacks); err != nil {
		return nil, err
	}
	if s.Graph != "" {
		return m, m.resolveGraph(h)
	}
	if err := m.mapNames(h); err != nil {
		return nil, err
	}
	if err := cmp.Or(m.findSizes(vocabularyModule, stacks[len(stacks)-1:]), m.checkStored()); err != nil {
		return nil, err
	}
	if err := m.findMedusa(h); err != nil {
		return nil, err
	}
	var err error
	m.Draft, err = m.findDraft(h)
	return m, err
}

// newModel returns a model without sizes and tensors.
func newModel(s *Spec) *Model {
	return &Model{Spec: s, Net: &s.Network, tensors: map[string]Tensor{}, sizes: map[string]map[string]any{}, sizeKeys: map[string][]string{}}
}

// mapNames fills m.tensors and m.unmatched.
func (m *Model) mapNames(h Headers) error {
	rules, err := m.Spec.rules()
	if err != nil {
		return err
	}
	pre := map[string]string{}
	for _, e := range m.Net.TensorNamePreMapping {
		pre[e.Key] = e.Val
	}
	names := h.Names()
	sort.Strings(names)
	draft := m.draftPrefix(names)
	for _, name := range names {
		if m.Spec.isMedusa(name) || m.Spec.isDraft(name, draft) {
			continue
		}
		seen := cmp.Or(pre[name], name)
		if err := m.Spec.checkUnread(name); err != nil {
			return err
		}
		if m.Spec.ignored(name) || m.predictsNext(name) {
			m.ignored = append(m.ignored, name)
			continue
		}
		rule, i, j, ok := match(rules, seen)
		if !ok {
			m.unmatched = append(m.unmatched, name)
			continue
		}
		dtype, shape, found := h.Lookup(name)
		if !found {
			panic("bug: headers list " + name + " but do not have it")
		}
		t := Tensor{File: name, Pattern: rule.stored.String(), shared: rule.shared(i, j), DType: dtype, Shape: shape, Pos: rule.pos}
		if seen != name {
			t.Pattern, t.shared = name, name
		}
		std := m.stackName(rule.standard.Name(i, j))
		if other, twice := m.tensors[std]; twice {
			if t, err = m.oneOf(std, other, t); err != nil {
				return err
			}
		}
		m.tensors[std] = t
	}
	return nil
}

// oneOf returns the tensor to use of two with one standard name: a table or bias that is
// recorded under each of its names in the network. Of biases it is that of the output
// matrix, whose name follows the other's.
func (m *Model) oneOf(std string, first, second Tensor) (Tensor, error) {
	bias := std == "output.bias"
	if !bias && std != "dec.token_embeddings.weight" || !m.Net.encodes() {
		return first, errAt(m.at(second), "tensors %q and %q both map to %s; map one of them to another standard name in tensor_name_mapping, or list the one that the model does not read in ignore_tensors", first.File, second.File, std)
	}
	if !slices.Equal(first.Shape, second.Shape) {
		return first, errAt(m.at(second), "tensor %q (%s): shape %v, want %v (that of %q)", second.File, std, second.Shape, first.Shape, first.File)
	}
	if bias {
		first, second = second, first
	}
	m.ignored = append(m.ignored, second.File)
	return first, nil
}

var storedLayer = regexp.MustCompile(`(?:^|\.)(?:layers|blk)\.([0-9]{1,6})\.`)

// predictsNext reports whether a tensor belongs to a layer for multi-token prediction.
// Such layers are stored behind those of the model (DeepSeek-V3, §2.2).
func (m *Model) predictsNext(name string) bool {
	n, ok := number(m.Spec.Config["num_nextn_predict_layers"])
	if !ok || n < 1 {
		return false
	}
	at := storedLayer.FindStringSubmatch(name)
	if at == nil {
		return false
	}
	layer, err := strconv.Atoi(at[1])
	return err == nil && layer >= m.Hyper.Layers && float64(layer) < float64(m.Hyper.Layers)+n
}

// match returns the first rule that matches a stored name, and the indices in the name.
func match(rules []nameRule, name string) (r nameRule, i, j int, ok bool) {
	for _, r := range rules {
		if i, j, ok := r.stored.Match(name); ok {
			return r, i, j, true
		}
	}
	return nameRule{}, -1, -1, false
}

// at returns the position for errors about a tensor: its mapping in the model
// spec, or the file.
func (m *Model) at(t Tensor) Pos {
	if t.Pos != (Pos{}) {
		return t.Pos
	}
	return Pos{File: m.Spec.File}
}

// has reports whether layer 0 (or the model) has the tensor.
func (m *Model) has(std string) bool {
	_, ok := m.tensors[layerName(std, 0)]
	return ok
}

// Tensors returns the standard names of all tensors found, sorted.
func (m *Model) Tensors() []string {
	var out []string
	for std := range m.tensors {
		out = append(out, std)
	}
	sort.Strings(out)
	return out
}

// unreadHint returns advice for a stored tensor that no module reads. The safe
// option comes first: ignoring a bias, a norm or an adapter silently leads to wrong
// results.
func (s *Spec) unreadHint() string {
	course := "map it in tensor_name_mapping, and set the keys of network_structure that describe its use"
	if s.Graph != "" {
		course = "declare a weight for it in graph: and use it"
	}
	return "; the model probably computes with it: " + course + ". ignore_tensors drops it from the computation: list it there only if it is a buffer or a part that does not affect the output, such as a training head"
}

// checkUnused returns an error for stored tensors that no module uses. Ignoring a
// bias silently would give wrong results.
func (m *Model) checkUnused() error {
	unused := m.unmatched
	if len(unused) == 0 {
		return nil
	}
	more := ""
	if len(unused) > 1 {
		more = fmt.Sprintf(" and %d more (such as %q)", len(unused)-1, unused[len(unused)-1])
	}
	return errAt(Pos{File: m.Spec.File}, "tensor %q%s: no module uses it%s", unused[0], more, m.Spec.unreadHint())
}

// missing returns the error for a required tensor that the files do not contain.
func (m *Model) missing(std string) error {
	rules, err := m.Spec.rules()
	if err != nil {
		return err
	}
	var want, others []string
	pos := Pos{File: m.Spec.File}
	names, _ := m.namesOf(std)
	for _, r := range rules {
		i, j, ok := -1, -1, false
		for _, name := range names {
			if !ok {
				i, j, ok = r.standard.Match(name)
			}
		}
		if !ok {
			continue
		}
		if r.pos != (Pos{}) && len(want) == 0 {
			pos = r.pos
		}
		list := &want
		if m.Spec.ModelFileFormat == "gguf" && !ggufNames()[r.stored.String()] && !strings.HasPrefix(r.stored.String(), "blk.") {
			list = &others
		}
		if name := r.stored.Name(i, j); !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	if len(want) == 0 {
		want = others
	}
	if len(want) == 0 {
		return errAt(pos, "tensor %s: missing, and no stored name maps to it; add it to tensor_name_mapping", std)
	}
	hint := ""
	if n := spelling.Nearest(want[0], m.unmatched); n != "" {
		hint = fmt.Sprintf("; the files have %q, which is unused", n)
	}
	if len(want) > 3 {
		want = want[:3]
	}
	return errAt(pos, "tensor %s: missing; want it stored as %s%s", std, strings.Join(want, " or "), hint)
}
