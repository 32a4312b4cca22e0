// Command calibtext writes the calibration text that iflowc contains, and the list of
// its sources beside it:
//
//	go run ./tools/gen/calibtext -clones DIR
//
// DIR contains a clone of each repository in the table, named OWNER+NAME. The commits are
// fixed, so every run writes the same text.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A source is a file of a repository, of which the text takes some kilobytes.
type source struct {
	what, license    string
	repo, commit     string
	path             string
	clean            func(data []byte) string
	kilobytes, start int // how much; from which kilobyte of the cleaned text on
}

func main() {
	log.SetFlags(0)
	clones := flag.String("clones", "", "folder with clones of the repositories")
	out := flag.String("o", "codegen/compiler/calibration", "folder of the text")
	flag.Parse()
	var pieces []piece
	for _, s := range sources() {
		dir := filepath.Join(*clones, strings.ReplaceAll(s.repo, "/", "+"))
		if s.repo == own {
			dir = "."
		}
		data, err := exec.Command("git", "-C", dir, "show", s.commit+":"+s.path).Output()
		if err != nil {
			log.Fatalf("%s: %s of %s at %s: %v", s.what, s.path, s.repo, s.commit, err)
		}
		text := excerpt(s.clean(data), s.start<<10, s.kilobytes<<10)
		if len(text) < s.kilobytes<<10*3/4 {
			log.Fatalf("%s: only %d bytes from %d KB on", s.path, len(text), s.start)
		}
		pieces = append(pieces, divide(text)...)
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.text + "\n\n")
	}
	write(filepath.Join(*out, "text.txt"), text.String())
	write(filepath.Join(*out, "README.md"), table(text.Len()))
}

func write(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}

// A piece is a part of a source, and its place in the text from 0 to 1: any beginning of
// the text holds every source in proportion.
type piece struct {
	text string
	at   float64
}

// pieceBytes is about the size of a window of 512 tokens.
const pieceBytes = 1500

// divide cuts a text at ends of lines.
func divide(text string) (pieces []piece) {
	for text != "" {
		part := excerpt(text, 0, pieceBytes)
		text = strings.TrimLeft(text[len(part):], "\n")
		pieces = append(pieces, piece{text: strings.TrimRight(part, "\n ")})
	}
	for i := range pieces {
		pieces[i].at = (float64(i) + 0.5) / float64(len(pieces))
	}
	return pieces
}

// excerpt returns whole lines: about n bytes from the line after start.
func excerpt(text string, start, n int) string {
	if start > 0 {
		text = text[min(start, len(text)):]
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	if len(text) <= n {
		return text
	}
	end := strings.LastIndexByte(text[:n], '\n')
	if end < n/2 { // a long line
		end = n + max(0, strings.IndexByte(text[n:], '\n'))
	}
	return text[:end]
}

// plain removes what ends lines invisibly.
func plain(data []byte) string {
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\r", "")) + "\n"
}

// latin1 decodes ISO 8859-1.
func latin1(data []byte) []byte {
	var b strings.Builder
	for _, c := range data {
		b.WriteRune(rune(c))
	}
	return []byte(b.String())
}

var blank = regexp.MustCompile(`\n{2,}`)

// book takes a text of Project Gutenberg out of its frame and joins the lines of its
// paragraphs.
func book(data []byte) string {
	text := plain(data)
	if i := strings.Index(text, "*** START OF"); i >= 0 {
		text = text[i+strings.IndexByte(text[i:], '\n'):]
	}
	if i := strings.Index(text, "*** END OF"); i >= 0 {
		text = text[:i]
	}
	var out []string
	for _, p := range blank.Split(text, -1) {
		out = append(out, strings.Join(strings.Fields(p), " "))
	}
	return strings.Join(out, "\n\n")
}

func latin1Book(data []byte) string { return book(latin1(data)) }

var tag = regexp.MustCompile(`(?s)<(?:head|title).*?</head>|<[^>]*>`)

// page is the text of an HTML page, paragraph by paragraph.
func page(data []byte) string {
	var out []string
	for _, line := range strings.Split(tag.ReplaceAllString(plain(data), ""), "\n") {
		if line = strings.TrimSpace(html.UnescapeString(line)); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// table is the list of sources, in Markdown.
func table(size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Calibration text

`+"`iflowc compile`"+` calibrates quantization on text.txt (%d bytes). `+"`tools/gen/calibtext`"+` writes the text and this table. The pieces are
interleaved, so any beginning of the text holds every source in proportion. None of it is in WikiText-2, on which the
documentation's perplexities are measured.

| text | kilobytes | license | file |
|---|---|---|---|
`, size)
	for _, s := range sources() {
		fmt.Fprintf(&b, "| %s | %d | %s | %s of %s, commit %.10s |\n", s.what, s.kilobytes, s.license, s.path, s.repo, s.commit)
	}
	return b.String()
}
