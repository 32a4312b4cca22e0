//go:build unix

package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
)

// warningHeader names what a request asks for and the service left out: one header for
// each, in the printable characters of ASCII.
const warningHeader = "X-Iflowc-Warning"

// Limits of the warnings of a response: their number, and the bytes of each.
const (
	maxWarnings = 16
	maxWarning  = 500
)

type warningsKey struct{}

// withWarnings lets warn write to the headers of a response.
func withWarnings(ctx context.Context, h http.Header) context.Context {
	return context.WithValue(ctx, warningsKey{}, h)
}

// warn adds a warning to the response, which must not have begun.
func warn(r *http.Request, text string) {
	h, _ := r.Context().Value(warningsKey{}).(http.Header)
	text = strconv.QuoteToASCII(text[:min(len(text), maxWarning)])
	text = text[1:min(len(text)-1, maxWarning)]
	if list := h.Values(warningHeader); h != nil && len(list) < maxWarnings && !slices.Contains(list, text) {
		h.Add(warningHeader, text)
	}
}
