package templates

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed step
var stepFiles embed.FS

// StepData is what a model's step consists of.
type StepData struct {
	Name       string
	Defines    []Define // what ifl_region.h shall have
	Headers    []string // of what the regions call
	Prototypes []string // of the kernels
	Impls      []string // tables of kernels for the same product
	Symbols    string   // macros for the places of values, weights and states
	Regions    string   // their functions
	Tables     []Table  // that ifl_main.h reads
}

// A Define is a macro without parameters.
type Define struct{ Name, Value string }

// A Table is an array of constants.
type Table struct {
	Type, Name string
	Rows       []string
}

// Step is the C translation unit of a model's step.
func Step(d StepData) (string, error) {
	t, err := template.ParseFS(stepFiles, "step/step.c.tmpl")
	if err != nil {
		return "", fmt.Errorf("the step's template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return "", fmt.Errorf("the step of %s: %w", d.Name, err)
	}
	return tidy(b.String()), nil
}
