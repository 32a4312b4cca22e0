// Package ctext writes the C that both targets share: literals, names for what
// a layout placed, and the text of row ops. What differs between the targets is
// a [Backend].
package ctext
