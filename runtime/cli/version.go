//go:build unix

package cli

import (
	"fmt"
	"runtime"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(m *model) error {
	_, err := fmt.Fprintln(m.Stdout, version(m.manifest))
	return err
}

// version identifies a program by its model, the hash of its computation, the
// compiler's version, and the platform.
func version(m *manifest.Manifest) string {
	return fmt.Sprintf("%s %.12s, compiled by iflowc %s %s/%s", m.Name, m.Hash, m.Compiler, runtime.GOOS, runtime.GOARCH)
}
