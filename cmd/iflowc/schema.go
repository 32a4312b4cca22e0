//go:build unix

package main

import (
	"os"

	"github.com/iflowc/iflowc/spec"
)

type schemaCmd struct{}

// Run prints the JSON Schema of model specs.
func (schemaCmd) Run() error {
	_, err := os.Stdout.Write(spec.Schema())
	return err
}
