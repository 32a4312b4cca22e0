//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// placed matches the place in an error: FILE:LINE:COLUMN, in characters.
var placed = regexp.MustCompile(`^(.+?):(\d+):(\d+): `)

// caret returns the line that an error is about, with a mark under the place; ""
// if the error names no place or the file cannot be read.
func caret(message string) string {
	m := placed.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	line, err1 := strconv.Atoi(m[2])
	column, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil || column < 1 {
		return ""
	}
	text, ok := lineOf(m[1], line)
	if !ok || column > utf8.RuneCountInString(text)+1 {
		return ""
	}
	var under strings.Builder
	for i, r := range []rune(text) {
		if i == column-1 {
			break
		}
		if r != '\t' { // a tab stays one, whatever its width
			r = ' '
		}
		under.WriteRune(r)
	}
	return fmt.Sprintf("%5d | %s\n      | %s^\n", line, text, under.String())
}

// lineOf reads one line of a file of text.
func lineOf(path string, line int) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		if n == line {
			return strings.TrimRight(s.Text(), "\r"), utf8.ValidString(s.Text()) && len(s.Text()) < 400
		}
	}
	return "", false
}
