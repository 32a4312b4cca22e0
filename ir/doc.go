// Package ir defines the intermediate representation between a model spec and
// generated code: modules of graphs of ops over values. Modules can be printed,
// parsed, edited by passes and run by the interpreter. docs/ir.md describes the
// text form.
//
// Attributes are semantics, annotations are scheduling decisions. Dropping every
// annotation changes only speed and placement, never a result.
package ir
