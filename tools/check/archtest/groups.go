package archtest

import "strings"

// A Group is a folder of related packages. They may import each other and
// packages of the groups in May. A package belongs to the group with the
// longest matching folder.
type Group struct {
	Folder string
	Holds  string   // contents, as lines in the picture; "" omits the group: test helpers and commands
	May    []string // folders of earlier groups, so that imports go one way
}

// sourcesFolder is a group of one package; the folders below it belong to other
// groups.
const sourcesFolder = "runtime"

// Groups lists all groups, lowest first. A row lists only the groups in use, so
// that a new arrow is a deliberate change.
var Groups = []Group{
	{"runtime/kit", "metrics, plots, ordered JSON,\nspelling, command lines,\nPython packages", nil},
	{"runtime/artifact", "manifest, packed weights,\nadapters, element types,\ndispatch tables", []string{"runtime/kit"}},
	{"runtime/text", "tokenizer, regexp, Jinja,\nchat templates, grammars", []string{"runtime/kit"}},
	{"runtime/sampling", "decoding, its settings,\nspeculation", []string{"runtime/artifact"}},
	{"runtime/device", "CPU, CUDA, ranks,\ncommunication, tuning, traces", []string{"runtime/kit", "runtime/artifact", "runtime/sampling"}},
	{"runtime/binary", "opens what a binary carries", []string{"runtime/artifact", "runtime/text", "runtime/device"}},
	{"runtime/engine", "core, scheduler, drafting,\nembedding", []string{"runtime/kit", "runtime/artifact", "runtime/sampling", "runtime/device"}},
	{"runtime/http", "server, access, chat page,\nload generator", []string{"runtime/kit", "runtime/artifact", "runtime/text", "runtime/sampling", "runtime/engine"}},
	{"runtime/api", "a model inside a Go program", []string{"runtime/text", "runtime/sampling", "runtime/binary", "runtime/engine"}},
	{"runtime/cli", "the subcommands of a binary", []string{"runtime/kit", "runtime/artifact", "runtime/text", "runtime/sampling", "runtime/device", "runtime/binary", "runtime/engine", "runtime/http"}},
	{sourcesFolder, "", nil}, // the sources, embedded

	{"models", "the model library: model specs,\nfamilies, the demo model", nil},
	{"ir/tensor", "blocks of quantized types,\nhost tensors, weight transforms", []string{"runtime/kit", "runtime/artifact"}},
	{"ir", "modules, graphs, ops, types;\ntext form, verifier", []string{"runtime/kit", "ir/tensor"}},
	{"ir/ops", "the table of ops", []string{"ir/tensor", "ir"}},
	{"ir/roll", "makes layers into loops", []string{"ir/tensor", "ir", "ir/ops"}},
	{"ir/interp", "runs any module, in float64", []string{"ir/tensor", "ir", "ir/ops"}},
	{"ir/irtest", "", []string{"ir/tensor", "ir", "ir/ops", "ir/interp"}},
	{"templates", "the kernel catalog", []string{"ir/tensor", "ir"}},
	{"spec/checkpoint", "readers of stored weights", []string{"runtime/kit", "runtime/artifact", "ir/tensor"}},
	{"spec/tokenizerfile", "readers of tokenizer files", []string{"runtime/kit", "runtime/text"}},
	{"spec", "YAML to IR", []string{"runtime/kit", "runtime/artifact", "models", "ir/tensor", "ir", "ir/ops", "ir/roll", "spec/checkpoint"}},
	{"passes", "IR to IR, and what it costs", []string{"runtime/kit", "ir/tensor", "ir", "ir/ops", "templates"}},
	{"codegen/toolchain", "C compilers, Go, the cache", []string{"runtime/kit"}},
	{"codegen/pack", "transforms and packs weights", []string{"runtime/kit", "runtime/artifact", "ir/tensor", "spec/checkpoint"}},
	{"codegen/demotest", "", []string{"runtime/kit", "codegen/toolchain"}},
	{"codegen/devicetest", "", []string{"runtime/artifact", "runtime/device", "runtime/engine", "runtime/sampling", "ir/tensor", "spec/checkpoint", "codegen/toolchain"}},
	{"codegen/layout", "plans a step, for every target", []string{"runtime/artifact", "ir/tensor", "ir", "ir/ops", "templates", "codegen/pack"}},
	{"codegen/ctext", "C that both emitters write", []string{"ir/tensor", "ir", "ir/ops", "templates", "codegen/layout"}},
	{"codegen/cpu", "emits C", []string{"runtime/artifact", "ir/tensor", "ir", "templates", "codegen/pack", "codegen/layout", "codegen/ctext"}},
	{"codegen/cuda", "emits CUDA C", []string{"runtime/artifact", "ir/tensor", "ir", "templates", "codegen/layout", "codegen/ctext"}},
	{"codegen", "the Go module of a binary", []string{"runtime", "runtime/artifact", "ir", "templates", "codegen/toolchain", "codegen/cpu", "codegen/cuda"}},
	{"codegen/compiler", "from a spec to a program,\nfor other programs to import", []string{"runtime/kit", "runtime/artifact", "runtime/text", "runtime/sampling", "runtime/device", "runtime/binary",
		"models", "ir/tensor", "ir", "ir/ops", "ir/interp", "templates", "spec/checkpoint", "spec/tokenizerfile", "spec", "passes",
		"codegen/toolchain", "codegen/pack", "codegen/layout", "codegen"}},
	{"cmd/hub", "", []string{"runtime/kit"}},
	{"cmd", "", []string{"runtime/kit", "runtime/artifact", "runtime/device", "runtime/binary", "runtime/cli",
		"models", "ir/tensor", "ir", "ir/ops", "ir/interp", "templates", "spec", "passes", "codegen/toolchain", "codegen", "codegen/compiler", "cmd/hub"}},
	{"tools", "", []string{"runtime/kit", "runtime/artifact", "runtime/text", "runtime/device", "runtime/engine", "ir/tensor", "ir", "ir/ops", "ir/interp", "templates", "spec/checkpoint", "spec/tokenizerfile", "spec", "passes", "codegen"}},
}

// GroupOf returns the index in Groups of a package's folder, or -1.
func GroupOf(dir string) int {
	best := -1
	for i, g := range Groups {
		if (dir == g.Folder || g.Folder != sourcesFolder && strings.HasPrefix(dir, g.Folder+"/")) && (best < 0 || len(g.Folder) > len(Groups[best].Folder)) {
			best = i
		}
	}
	return best
}
