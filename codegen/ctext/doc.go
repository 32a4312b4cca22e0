// Package ctext writes the C that both targets share: literals, names for the weights,
// states and values of a layout, and row ops. A [Backend] emits the parts that differ
// between the targets.
package ctext
