package layout

import (
	"strconv"
	"strings"
)

// symbols are the C names given so far.
type symbols map[string]bool

// of makes a C name of the name that something has in the IR, in capitals, as
// macros have them: "W_WQKV" of "wqkv". A number tells equal names apart.
func (s symbols) of(prefix, name string) string {
	base := prefix + strings.ToUpper(CName(name))
	c := base
	for i := 2; s[c]; i++ {
		c = base + "_" + strconv.Itoa(i)
	}
	s[c] = true
	return c
}

// CName makes an IR name a C identifier.
func CName(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, s)
}
