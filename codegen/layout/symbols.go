package layout

import (
	"strconv"
	"strings"
)

// symbols holds the C names in use.
type symbols map[string]bool

// of returns a C macro name for an IR name: "W_WQKV" for "wqkv". A number makes equal
// names unique.
func (s symbols) of(prefix, name string) string {
	base := prefix + strings.ToUpper(CName(name))
	c := base
	for i := 2; s[c]; i++ {
		c = base + "_" + strconv.Itoa(i)
	}
	s[c] = true
	return c
}

// CName converts an IR name to a C identifier.
func CName(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, s)
}
