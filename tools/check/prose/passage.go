package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// A passage is text that is read in one go: a paragraph, a list item, a table row,
// a comment or a string literal.
type passage struct {
	line  int // of its beginning
	text  string
	prose bool // sentences of it have a maximum length
}

// problems lists the retired phrases and the sentences that are too long.
func (p passage) problems(list []phrase) []string {
	var out []string
	text := strings.Join(strings.Fields(p.text), " ")
	lower := strings.ToLower(text)
	for _, r := range list {
		if !r.mayOccur(lower) {
			continue
		}
		if m := r.find.FindString(lower); m != "" {
			out = append(out, fmt.Sprintf("%q is retired: use %s", m, r.Use))
		}
	}
	if !p.prose {
		return out
	}
	for _, s := range sentences(text) {
		if n := len(strings.Fields(s)); n > maxWords {
			out = append(out, fmt.Sprintf("a sentence of %d words: %s …", n, strings.Join(strings.Fields(s)[:8], " ")))
		}
	}
	return out
}

var (
	inlineCode  = regexp.MustCompile("`[^`]*`")
	sentenceEnd = regexp.MustCompile(`[.!?]["')*_]*\s+`)
	notAnEnd    = regexp.MustCompile(`(?:\b(?:e\.g|i\.e|vs|cf|Fig|Sec|No|St|et al|approx)|\b[A-Z])\.$`)
)

// sentences splits text at full stops; inline code counts as one word.
func sentences(text string) []string {
	text = inlineCode.ReplaceAllString(text, "CODE")
	var out []string
	from := 0
	for _, m := range sentenceEnd.FindAllStringIndex(text, -1) {
		if notAnEnd.MatchString(text[from : m[0]+1]) {
			continue
		}
		out = append(out, text[from:m[1]])
		from = m[1]
	}
	return append(out, text[from:])
}

var (
	listItem = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	special  = regexp.MustCompile(`^\s*(?:#|>|\||<|!\[)`)
)

// markdown splits a page into paragraphs, list items, headings and table rows. Code
// blocks, fenced or indented by four spaces after a blank line, are left out.
func markdown(text string) ([]passage, error) {
	var out []passage
	fenced, blank, code := false, true, false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
			blank = true
			continue
		}
		indented := strings.HasPrefix(line, "    ") && !listItem.MatchString(line)
		code = indented && (blank || code)
		switch {
		case fenced || code && len(out) > 0:
		case trimmed == "":
			blank = true
		case blank || listItem.MatchString(line) || special.MatchString(line):
			out = append(out, passage{i + 1, listItem.ReplaceAllString(trimmed, ""), !strings.HasPrefix(trimmed, "|")})
			blank = special.MatchString(line)
		default:
			out[len(out)-1].text += " " + trimmed
		}
	}
	return out, nil
}

// goFile takes the paragraphs of the comments and the string literals.
func goFile(text string) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out []passage
	for _, group := range file.Comments {
		line := files.Position(group.Pos()).Line
		next := line
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			if !strings.HasPrefix(paragraph, "\t") && !strings.HasPrefix(paragraph, "  ") {
				out = append(out, passage{line: next, text: paragraph, prose: true})
			}
			next += strings.Count(paragraph, "\n") + 2
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil && strings.Contains(s, " ") {
				out = append(out, passage{line: files.Position(l.Pos()).Line, text: s})
			}
		}
		return true
	})
	return out, nil
}

// wholeText takes every line together with the next one, so that a phrase is found
// across a line break.
func wholeText(text string) ([]passage, error) {
	lines := strings.Split(text, "\n")
	marks := regexp.MustCompile(`^\s*(?://|#|\*|--)?\s*`)
	for i := range lines {
		lines[i] = marks.ReplaceAllString(lines[i], "")
	}
	var out []passage
	for i := range lines {
		out = append(out, passage{line: i + 1, text: lines[i]})
		if i > 0 {
			last, first := lastWords(lines[i-1]), firstWords(lines[i])
			out = append(out, passage{line: i, text: last + " " + first})
		}
	}
	return out, nil
}

// lastWords and firstWords are two words of a line's end and beginning: a phrase of
// two or three words that a line break divides lies within them.
func lastWords(line string) string {
	w := strings.Fields(line)
	return strings.Join(w[max(0, len(w)-2):], " ")
}

func firstWords(line string) string {
	w := strings.Fields(line)
	return strings.Join(w[:min(2, len(w))], " ")
}
