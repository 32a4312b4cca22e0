package templates

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed step
var stepFiles embed.FS

// StepData is the data of the template of a model's step.
type StepData struct {
	Name       string
	Defines    []Define // macros for ifl_region.h
	Headers    []string // headers of functions that the regions call
	Prototypes []string // prototypes of the kernels
	Impls      []string // tables of the candidate kernels of each matmul
	Symbols    string   // macros for the addresses of values, weights and states
	Regions    string   // functions of the regions
	Tables     []Table  // tables for ifl_main.h
}

// A Define is an object-like macro.
type Define struct{ Name, Value string }

// A Table is an array of constants.
type Table struct {
	Type, Name string
	Rows       []string
}

// Step returns the C translation unit of a model's step.
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
