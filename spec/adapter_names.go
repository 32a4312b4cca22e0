package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// An Alias is the name of a stored matrix in files of another format: an adapter that
// was trained or converted for them calls the matrix so.
type Alias struct {
	Name string // without ".weight"

	heads    int  // the rows of each head are in another order; 0: they are in the same
	toHalves bool // the other files store pairs of channels that rope rotates in two halves, not as neighbors
}

// Row returns the row of the matrix under its other name that is row r of the model's
// own matrix, which has as many rows.
func (a Alias) Row(r, rows int) int {
	if a.heads == 0 {
		return r
	}
	d := rows / a.heads
	if k := r % d; a.toHalves {
		return r - k + k%2*(d/2) + k/2
	} else {
		return r - k + k%(d/2)*2 + k/(d/2)
	}
}

// adapterKeys are the keys of network_structure that decide how files name and order
// the matrices.
var adapterKeys = []string{"tensor_name_prefix", "tensor_name_mapping", "qk_column_order", "qkv_format"}

// adapterParts are the matrices with the same rows in all formats, except that some
// formats order the rows of queries and keys for rope in another way. Those of
// state spaces and linear attention differ.
var adapterParts = []string{
	"self_attn.wq", "self_attn.wk", "self_attn.wv", "self_attn.wo", "self_attn.qkv", "self_attn.wq_a", "self_attn.wq_b", "self_attn.wkv_a", "self_attn.wg",
	"cross_attn.wq", "cross_attn.wk", "cross_attn.wv", "cross_attn.wo",
	"feed_forward.w1", "feed_forward.w2", "feed_forward.w3", "feed_forward.w1n3", "moe.gate",
	"moe.shared_expert.w1", "moe.shared_expert.w2", "moe.shared_expert.w3", "output", "pooler", "classifier",
}

// AdapterNames returns the names of stored matrices in files of other formats: those of
// Hugging Face for a GGUF file, and the reverse. The result has the stored names as keys.
// A matrix whose rows a format has in an unknown order has no name there.
func (m *Model) AdapterNames() map[string][]Alias {
	own, _ := m.Spec.Config["model_file_format"].(string)
	arch, _ := m.Spec.Config["model_type"].(string)
	fam, ok := findFamily(cmp.Or(m.Spec.Family, arch))
	if !ok {
		return nil
	}
	out := map[string][]Alias{}
	for _, format := range []string{"", "gguf"} {
		if format == own || m.Net.Topology() == "encoder_decoder" { // whose GGUF files name both stacks otherwise
			continue
		}
		f := fam.names(m.Spec.Config, format)
		if f == nil {
			continue
		}
		for _, std := range m.Tensors() {
			t := m.tensors[std]
			out[t.File] = append(out[t.File], f.aliases(m, std)...)
		}
	}
	return out
}

// A fileFormat describes the files of a family in one format.
type fileFormat struct {
	network Network
	lists   [][]nameRule // names as the format has them, the family's own first
	rules   []nameRule   // with and without prefixes, in the order in which they are tried
}

// names returns how files of another format name the matrices; nil if the matrices differ,
// or if the family has an expression that config does not determine.
func (f *family) names(config map[string]any, format string) *fileFormat {
	typ := f.otherType(config, format)
	config = maps.Clone(config)
	config["model_type"] = typ
	delete(config, "model_file_format")
	if format != "" {
		config["model_file_format"] = format
	}
	out := &fileFormat{network: newNetwork(f.modules())}
	for _, g := range f.chain() {
		if g.ScaledInGGUF {
			return nil
		}
		nodes := []*yaml.Node{&g.Network}
		for i := range g.When {
			if w := &g.When[i]; w.holds(config, config) {
				nodes = append(nodes, &w.Network)
			}
		}
		for _, node := range nodes {
			if g.network(withKeys(node, adapterKeys), config, &out.network) != nil {
				return nil
			}
		}
	}
	own, err := rulesOfAll(out.network.TensorNameMapping)
	if err != nil {
		return nil
	}
	out.rules = slices.Concat(own, defaultRules())
	out.lists = [][]nameRule{slices.DeleteFunc(own, func(r nameRule) bool { return isGGUF(&r) != (format == "gguf") })}
	for _, l := range defaultNames() {
		if l.format == format {
			out.lists = append(out.lists, l.rules)
		}
	}
	return out
}

// isGGUF reports whether a rule is for GGUF files, which families list with others.
func isGGUF(r *nameRule) bool { return strings.Contains(r.stored.String(), "blk.{i}.") }

// otherType returns the model_type of the family's files in another format, if the family
// states only one.
func (f *family) otherType(config map[string]any, format string) any {
	own, other := config["model_type"], ""
	for i := range f.When {
		typ, ok := f.When[i].If["model_type"].(string)
		if !ok || format != "" && f.When[i].If["model_file_format"] != format {
			continue
		}
		if typ == own || other != "" && other != typ {
			return own
		}
		other = typ
	}
	if other != "" {
		return other
	}
	return own
}

// withKeys returns a mapping with only some of its keys.
func withKeys(node *yaml.Node, keys []string) *yaml.Node {
	out := *node
	out.Content = nil
	for i := 0; i+1 < len(node.Content); i += 2 {
		if slices.Contains(keys, node.Content[i].Value) {
			out.Content = append(out.Content, node.Content[i], node.Content[i+1])
		}
	}
	return &out
}

// aliases returns the names of a standard name's matrix: those of the first list that
// has any.
func (f *fileFormat) aliases(m *Model, std string) (out []Alias) {
	part, isWeight := strings.CutSuffix(std, ".weight")
	if head, rest, ok := strings.Cut(part, "."); ok && (head == "dec" || head == "enc") {
		_, part, _ = strings.Cut(rest, ".")
	}
	a, ok := f.order(m, part)
	if !isWeight || !ok || m.renames(std) {
		return nil
	}
	for _, list := range f.lists {
		for i := range list {
			if !list[i].whole {
				continue
			}
			if base, ok := strings.CutSuffix(f.nameOf(m, &list[i], std), ".weight"); ok {
				a.Name = base
				if _, gated := m.tensors[strings.Replace(std, ".w1.", ".w3.", 1)]; part == "feed_forward.w1" && !gated {
					a.Name = strings.Replace(base, ".ffn_gate", ".ffn_up", 1) // GGUF's name of the first of two matrices
				}
				out = append(out, a)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// order compares the order of a matrix's rows in the other format with the model's own.
func (f *fileFormat) order(m *Model, part string) (Alias, bool) {
	own, other := m.Net.number("qk_column_order") == 2, f.network.number("qk_column_order") == 2
	rope := m.Net.word("position_embedding") == "rope" // else the order has no effect, and need not be that of the files
	switch {
	case !slices.Contains(adapterParts, part):
		return Alias{}, false
	case part == "self_attn.qkv":
		return Alias{}, own == other && m.Net.number("qkv_format") == 1 && f.network.number("qkv_format") == 1
	case own == other || !strings.HasPrefix(part, "self_attn.w") || part == "self_attn.wv" || part == "self_attn.wo":
		return Alias{}, true
	case part == "self_attn.wq" && rope && m.Net.word("attn_gate") != "query":
		return Alias{heads: m.size("heads"), toHalves: other}, true
	case part == "self_attn.wk" && rope:
		return Alias{heads: m.size("kv_heads"), toHalves: other}, true
	}
	return Alias{}, false
}

// nameOf returns the name of a standard name's tensor by a rule; "" if the rule is for
// another one, or if readers of the format take the name for another one.
func (f *fileFormat) nameOf(m *Model, r *nameRule, std string) string {
	i, j, ok := r.standard.Match(std)
	if !ok && m.Net.Topology() == "encoder_only" {
		i, j, ok = r.standard.Match(strings.Replace(std, "enc.", "dec.", 1))
	}
	if !ok {
		return ""
	}
	name := r.stored.Name(i, j)
	first, i, j, ok := match(f.rules, name)
	if !ok || m.stackName(first.standard.Name(i, j)) != std {
		return ""
	}
	return name
}
