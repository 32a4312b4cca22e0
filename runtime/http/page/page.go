// Package page serves the chat page of a per-model binary: one file that loads
// nothing else, so that it works offline.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
)

// The parts of the page: page.html has a place for each of the others.
//
//go:embed page.html style.css markdown.js chat.js
var files embed.FS

var html = join()

// join puts the parts into page.html.
func join() []byte {
	page := part("page.html")
	for _, name := range []string{"style.css", "markdown.js", "chat.js"} {
		page = bytes.Replace(page, []byte("{{"+name+"}}"), part(name), 1)
	}
	return page
}

// part returns an embedded file.
func part(name string) []byte {
	text, err := files.ReadFile(name)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return text
}

// Handler serves the page. Its Content-Security-Policy allows the page's own
// script and style and requests to this server, and nothing else; the script
// cannot make HTML of text (Trusted Types).
func Handler() http.Handler {
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		hash("script"), hash("style"))
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		_, _ = w.Write(html) // the client has disconnected: no error to report
	})
}

// hash returns the hash of an element's text as a Content-Security-Policy
// source.
func hash(element string) string {
	_, rest, _ := bytes.Cut(html, []byte("<"+element+">"))
	text, _, ok := bytes.Cut(rest, []byte("</"+element+">"))
	if !ok {
		panic("bug: the page has no " + element)
	}
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
