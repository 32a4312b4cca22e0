// Package page is the chat page of a service: one file without anything from
// elsewhere, so that it works offline.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
)

//go:embed page.html
var html []byte

// Handler answers with the page. Its policy lets the browser run the page's
// own script and style and talk to this service, and nothing else.
func Handler() http.Handler {
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		hash("script"), hash("style"))
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		_, _ = w.Write(html) // the browser went: nobody is left to tell
	})
}

// hash is the hash of an element's text, as a policy names it.
func hash(element string) string {
	_, rest, _ := bytes.Cut(html, []byte("<"+element+">"))
	text, _, ok := bytes.Cut(rest, []byte("</"+element+">"))
	if !ok {
		panic("bug: the page has no " + element)
	}
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
