package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// badgeLicense shows the license of the repository's LICENSE file.
func badgeLicense() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(text), "Apache License") || !strings.Contains(string(text), "Version 2.0") {
		return nil, fmt.Errorf("LICENSE is not the Apache License 2.0")
	}
	return badge("license", "Apache-2.0", "#1d5fa8"), nil
}

// badgeGo shows the Go version of go.mod.
func badgeGo() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("go.mod has no go line")
	}
	return badge("go", string(m[1])+" or newer", "#0b6e80"), nil
}

// badgeConformance shows how many models the tests compare with the recorded
// outputs of transformers.
func badgeConformance() ([]byte, error) {
	found, err := filepath.Glob(filepath.Join(root, "spec/testdata/families/*/expected.json"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no expected outputs in spec/testdata/families")
	}
	return badge("same outputs as transformers", fmt.Sprintf("%d models", len(found)), "#1f7a3d"), nil
}

// badge draws a label and a value in two boxes, in white on colors that are
// dark enough for light and dark pages.
func badge(label, value, color string) []byte {
	const height, letter, pad = 20, 6.6, 8
	left, right := letter*float64(len(label))+2*pad, letter*float64(len(value))+2*pad
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%d" viewBox="0 0 %[1]s %[2]d" role="img">`, num(left+right), height)
	p(`<title>%s: %s</title>`, label, value)
	p(`<desc>A badge that says %s: %s</desc>`, label, value)
	p(`<clipPath id="c"><rect width="%s" height="%d" rx="3"/></clipPath>`, num(left+right), height)
	p(`<g clip-path="url(#c)"><path fill="#4a4f57" d="M0 0h%sv%dH0z"/><path fill="%s" d="M%s 0h%sv%[2]dH%[4]sz"/></g>`, num(left), height, color, num(left), num(right))
	p(`<g fill="#fff" text-anchor="middle" font-family="system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif" font-size="11.5">`)
	p(`<text x="%s" y="14">%s</text><text x="%s" y="14">%s</text></g>`, num(left/2), label, num(left+right/2), value)
	p(`</svg>`)
	return []byte(b.String())
}
