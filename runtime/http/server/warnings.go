//go:build unix

package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// warningHeader names what a request asks for and the service left out: one header for
// each, in the printable characters of ASCII.
const warningHeader = "X-Iflowc-Warning"

// Limits of the warnings of a response: their number, and the bytes of each.
const (
	maxWarnings = 16
	maxWarning  = 500
)

// warn adds a warning to the response, unless it has begun.
func warn(r *http.Request, text string) {
	x := exchangeOf(r)
	if x == nil {
		return
	}
	if x.out != nil { // its timer may begin the response now
		x.out.mu.Lock()
		defer x.out.mu.Unlock()
		if x.out.open {
			return
		}
	}
	text = printable(text)
	text = text[:min(len(text), maxWarning)]
	if list := x.Header().Values(warningHeader); len(list) < maxWarnings && !slices.Contains(list, text) {
		x.Header().Add(warningHeader, text)
	}
}

// printable returns a text in which escapes stand for all but the printable characters of
// ASCII.
func printable(text string) string {
	var out strings.Builder
	for _, c := range text {
		if c >= ' ' && c <= '~' {
			out.WriteRune(c)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
		if out.Len() > maxWarning {
			break
		}
	}
	return out.String()
}
