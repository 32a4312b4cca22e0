package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tensorNames is the module that computes other names of a layer's tensors.
const tensorNames = "tensor_names"

// An otherName says that tensors of a layer whose names begin with part may have another
// name in the files.
type otherName struct {
	part, other string // with dots around part and behind other, which begins with the stack
	none        bool   // the files have no such tensors for the layer
	shared      bool   // other layers read the same tensors
}

// otherNames returns the other names of the tensors of a layer, by the module tensorNames. Its
// rows are of a part and what replaces it: another part, or None, and numbers in place of the layer's.
func (m *Model) otherNames(at *site) (names []otherName) {
	key := site{std: at.std, layer: at.layer}
	if names, ok := m.names[key]; ok {
		return names
	}
	if m.namer == nil {
		m.namer, m.names = newLowerer(m), map[site][]otherName{}
	}
	m.names[key] = nil // for tensors that the module asks for
	layer := at.std + "." + strconv.Itoa(at.layer)
	results, err := m.namer.call(tensorNames, layer, nil)
	if err != nil { // lowering fails by it too
		return nil
	}
	rows, _ := results[0].([]any)
	for _, r := range rows {
		row, _ := r.([]any)
		if len(row) < 2 {
			continue
		}
		n := otherName{part: dotted(row[:1]), other: layer + dotted(row[1:2]), none: row[1] == nil, shared: len(row) > 2}
		if n.shared {
			n.other = at.std + strings.TrimSuffix(dotted(row[2:]), ".") + dotted(row[1:2])
		}
		names = append(names, n)
	}
	m.names[key] = names
	return names
}

// dotted returns words and numbers with dots before and behind each.
func dotted(parts []any) string {
	out := "."
	for _, p := range parts {
		if p != "" {
			out += fmt.Sprint(p) + "."
		}
	}
	return out
}

// find returns the stored tensor of a standard name, and the standard name that its own name
// maps to.
func (m *Model) find(std string) (name string, t Tensor, ok bool) {
	names, shared := m.namesOf(std)
	for _, name := range names {
		if t, ok := m.tensors[name]; ok {
			if shared {
				t.Pattern = t.shared
			}
			return name, t, true
		}
	}
	return std, t, false
}

// namesOf returns the names that the tensor of a standard name may be stored under, and whether
// several layers read it. A tensor that all layers read has no number.
func (m *Model) namesOf(std string) (names []string, shared bool) {
	at := siteOf(std)
	if at.layer < 0 {
		return []string{std}, false
	}
	rest := std[len(at.std)+len(strconv.Itoa(at.layer))+len(".."):]
	names = append(names, std)
	for _, n := range m.otherNames(&at) {
		below, ok := strings.CutPrefix("."+rest, n.part)
		switch {
		case ok && n.none:
			return nil, false
		case ok:
			names, shared = append(names, n.other+below), shared || n.shared
		}
	}
	return append(names, at.std+"."+rest), shared
}

// renames reports whether a layer reads a tensor as that of another part.
func (m *Model) renames(std string) bool {
	at := siteOf(std)
	return at.layer >= 0 && slices.ContainsFunc(m.otherNames(&at), func(n otherName) bool { return !n.shared && strings.HasPrefix(std, n.other) })
}

// stackName returns the name of a tensor in the stack that the network has. An encoder without a
// decoder has the names of a decoder's layers.
func (m *Model) stackName(std string) string {
	if m.Net.Topology() == "encoder_only" {
		return strings.Replace(std, "dec.", "enc.", 1)
	}
	return std
}

// Tensor returns the stored tensor of a standard name.
func (m *Model) Tensor(std string) (Tensor, bool) {
	_, t, ok := m.find(std)
	return t, ok
}
