package spec

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/runtime/kit/spelling"
	"gopkg.in/yaml.v3"
)

//go:embed outside.yaml
var outsideYAML []byte

// An outside says what architectures need that no module value gives.
type outside struct {
	Architectures []string
	Missing       string
	Graph         bool // the IR's ops suffice
}

var outsides = sync.OnceValue(func() []outside {
	var out []outside
	if err := yaml.Unmarshal(outsideYAML, &out); err != nil {
		panic("bug: outside.yaml: " + err.Error())
	}
	return out
})

// unknownArchitecture returns the error for an architecture without a family: what
// it needs, where that is known, what there is, and what a graph could do.
func (s *Spec) unknownArchitecture(arch string) error {
	for _, o := range outsides() {
		if !slices.Contains(o.Architectures, arch) {
			continue
		}
		graph := "and the ops of a graph: block have none either"
		if o.Graph {
			graph = "but a graph: block could write it with the ops of docs/ops.md"
		}
		return errAt(Pos{File: s.File}, "architecture %q needs %s; network_structure has no value for that (its layers are attention, full, sliding or latent, and an FFN or experts), %s", arch, o.Missing, graph)
	}
	return errAt(Pos{File: s.File}, "architecture %q is not known%s; known: %s; write a model spec with network_structure for it (iflowc schema lists the module values), with a graph: block where no value fits", arch, suggestOnly(arch), strings.Join(Architectures(), ", "))
}

func suggestOnly(arch string) string {
	if n := spelling.Nearest(arch, Architectures()); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}
