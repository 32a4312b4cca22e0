//go:build unix

package cli

import (
	"io"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/runtime/kit/completion"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Run prints the script that makes a shell complete this binary's command line.
func (c *completionCmd) Run(m *model, k *kong.Context) error {
	script, err := completion.Script(c.Shell, filepath.Base(m.Program), k.Model, nil)
	if err == nil {
		_, err = io.WriteString(m.Stdout, script)
	}
	return err
}
