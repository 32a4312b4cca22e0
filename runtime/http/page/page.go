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
	"slices"
	"strings"
)

// The parts of the page: page.html has a place for each of the others.
//
//go:embed page.html style.css *.js
var files embed.FS

// The scripts of the page. The libraries are the published files, below their
// licenses; docs/dependencies.md lists them.
var (
	libraries = []string{"highlight.min.js", "temml.min.js"}
	own       = []string{"markdown.js", "code.js", "keep.js", "files.js", "faults.js", "chat.js"}
)

var html = join()

// join puts the parts into page.html.
func join() []byte {
	page := part("page.html")
	for _, name := range append([]string{"style.css"}, slices.Concat(libraries, own)...) {
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
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		hashes("script"), hashes("style"))
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

// hashes returns the hashes of the texts of all elements with a name, as
// Content-Security-Policy sources.
func hashes(element string) string {
	var list []string
	for rest := html; ; {
		_, after, found := bytes.Cut(rest, []byte("<"+element+">"))
		if !found {
			return strings.Join(list, " ")
		}
		var text []byte
		if text, rest, found = bytes.Cut(after, []byte("</"+element+">")); !found {
			panic("bug: the page's " + element + " has no end")
		}
		sum := sha256.Sum256(text)
		list = append(list, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
}
