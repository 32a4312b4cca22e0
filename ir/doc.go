// Package ir is the language between specification and code: modules of
// graphs of ops over values. A module can be printed, read back, edited by
// passes and run by the interpreter; docs/ir.md describes its text form.
//
// Attributes carry meaning, notes carry decisions: dropping every note changes
// only speed and place, never an answer.
package ir
