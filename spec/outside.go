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

// An unsupported entry is a group of unsupported architectures and the feature that they need.
type unsupported struct {
	Architectures []string
	Missing       string
}

var unsupportedArchitectures = sync.OnceValue(func() []unsupported {
	var out []unsupported
	if err := yaml.Unmarshal(outsideYAML, &out); err != nil {
		panic("bug: outside.yaml: " + err.Error())
	}
	return out
})

// unknownArchitecture returns the error for an architecture without a family. It
// names the missing feature, if known.
func (s *Spec) unknownArchitecture(arch string) error {
	for _, o := range unsupportedArchitectures() {
		if !slices.Contains(o.Architectures, arch) {
			continue
		}
		return errAt(Pos{File: s.File}, "architecture %q needs %s; network_structure does not support that (its layers are full, sliding-window or latent attention, linear attention, state spaces or short convolutions with an FFN or experts), nor do the ops of a graph: block", arch, o.Missing)
	}
	return errAt(Pos{File: s.File}, "unknown architecture %q%s; known: %s; write a model spec with network_structure for it (iflowc schema lists the module values), or with a graph: block if no value fits", arch, suggestOnly(arch), strings.Join(Architectures(), ", "))
}

func suggestOnly(arch string) string {
	if n := spelling.Nearest(arch, Architectures()); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}
