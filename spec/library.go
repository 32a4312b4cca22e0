package spec

import (
	"io/fs"
	"path"
	"slices"

	"github.com/iflowc/iflowc/models"
	"gopkg.in/yaml.v3"
)

// A LibraryModel is an entry of the model library, known without the model's files.
type LibraryModel struct {
	Name       string
	Family     string // "": the spec describes the network without a family
	Network    string // such as decoder_only, or decoder_only.sparse_moe
	Parameters int    // 0: not known
	Repository string // hub repository of the files; "": none
	Embedded   bool   // the library holds the files itself
	Spec       *Spec  // as written, without family, options and config.json
}

// Library returns the models of the library, sorted by name.
func Library() []LibraryModel {
	var list []LibraryModel
	for _, name := range models.Names() {
		src, err := models.Lookup(name)
		if err != nil {
			panic("bug: " + err.Error())
		}
		s, network, err := parse(name, src)
		if err != nil {
			panic("bug: " + err.Error())
		}
		_, err = fs.Stat(models.FS(), name)
		list = append(list, LibraryModel{
			Name: name, Family: s.Family, Network: networkType(s.Family, network), Parameters: s.Parameters,
			Repository: s.Repository, Embedded: err == nil, Spec: s,
		})
	}
	return list
}

// networkType returns the type that network_structure states, or else the family.
func networkType(name string, network *yaml.Node) string {
	if t := statedType(network); t != "" {
		return t
	}
	f, ok := findFamily(name)
	if !ok {
		return ""
	}
	for _, g := range slices.Backward(f.chain()) {
		if t := statedType(&g.Network); t != "" {
			return t
		}
	}
	return ""
}

// statedType returns the value of network_structure's key type, or "" if it is absent.
func statedType(network *yaml.Node) string {
	if network == nil {
		return ""
	}
	for i := 0; i+1 < len(network.Content); i += 2 {
		if network.Content[i].Value == "type" {
			return canonicalWord(deref(network.Content[i+1]).Value)
		}
	}
	return ""
}

// Parameters counts the elements of the stored tensors that the model uses.
func (m *Model) Parameters() int64 { return m.countParameters("") }

// countParameters counts the elements of the used tensors with stored names that
// match a pattern; "" matches all.
func (m *Model) countParameters(pattern string) (n int64) {
	seen := map[string]bool{}
	for _, t := range m.tensors {
		if ok, err := path.Match(pattern, t.File); err != nil || pattern != "" && !ok || seen[t.File] || m.used != nil && !m.used[t.File] {
			continue
		}
		seen[t.File] = true
		elements := int64(1)
		for _, d := range t.Shape {
			elements *= int64(d)
		}
		n += elements
	}
	return n
}
