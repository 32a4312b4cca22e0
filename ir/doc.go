// Package ir is the language between model spec and code: modules of
// graphs of ops over values. A module can be printed, read back, edited by
// passes and run by the interpreter; docs/ir.md describes its text form.
//
// Attributes carry meaning, annotations carry decisions: dropping every annotation changes
// only speed and place, never an answer.
package ir
