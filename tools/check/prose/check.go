package main

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxWords is the length of the longest sentence outside tables.
const maxWords = 45

//go:embed retired.yaml
var retiredYAML []byte

// A phrase is an entry of retired.yaml.
type phrase struct {
	Pattern  string `yaml:"phrase"` // regular expression over lower case; a space matches any white space
	Use      string `yaml:"use"`    // the term to use instead
	find     *regexp.Regexp
	literals []string // see literals
}

// retired reads the list of phrases.
func retired() ([]phrase, error) {
	var list []phrase
	if err := yaml.Unmarshal(retiredYAML, &list); err != nil {
		return nil, fmt.Errorf("retired.yaml: %w", err)
	}
	for i := range list {
		p := &list[i]
		var err error
		if p.find, err = regexp.Compile(`\b(?:` + p.Pattern + `)\b`); err != nil {
			return nil, fmt.Errorf("retired.yaml: %w", err)
		}
		re, err := syntax.Parse(p.Pattern, syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("retired.yaml: %w", err)
		}
		p.literals = literals(re)
	}
	return list, nil
}

// skipped are folders whose text is data, generated or someone else's.
var skipped = map[string]bool{".git": true, "testdata": true, "examples": true, "prose": true, "demo": true, "dist": true, "site": true}

// check returns the findings in the named files and folders below root, or in all
// of root, as "file:line: problem".
func check(root string, names []string) ([]string, error) {
	list, err := retired()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	var found []string
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && skipped[d.Name()]:
				return filepath.SkipDir
			case d.IsDir():
				return nil
			}
			passages, err := read(path)
			if err != nil {
				return err
			}
			shown, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, p := range passages {
				for _, problem := range p.problems(list) {
					found = append(found, fmt.Sprintf("%s:%d: %s", shown, p.line, problem))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// read splits a file into passages by its kind; a file of a kind without prose has
// none.
func read(path string) ([]passage, error) {
	split := splitters[filepath.Ext(path)]
	if split == nil && filepath.Base(filepath.Dir(path)) == "script" {
		split = wholeText
	}
	if split == nil || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "prompts.py" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return split(string(text))
}

// splitters are the readers of kinds of files, by extension.
var splitters = map[string]func(string) ([]passage, error){
	".md": markdown, ".go": goFile,
	".c": wholeText, ".h": wholeText, ".cu": wholeText, ".cuh": wholeText, ".tmpl": wholeText,
	".html": wholeText, ".js": wholeText, ".py": wholeText, ".yaml": wholeText, ".yml": wholeText,
}
