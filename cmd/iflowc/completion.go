//go:build unix

package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/iflowc/iflowc/models"
	"github.com/iflowc/iflowc/runtime/kit/completion"
	"github.com/iflowc/iflowc/spec"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Run prints the script that makes a shell complete iflowc's command line.
func (c *completionCmd) Run(k *kong.Context) error {
	types := slices.Concat(spec.SizeNames(), spec.TypeNames())
	lib, err := spec.Modules("")
	if err != nil {
		return err
	}
	script, err := completion.Script(c.Shell, "iflowc", k.Model, map[string][]string{
		"spec": models.Names(), "module": lib.Names(), "FAMILY": spec.Families(), "q4|TYPE": types, "f16|TYPE": spec.KVTypeNames(),
	})
	if err == nil {
		_, err = fmt.Print(script)
	}
	return err
}
