package main

import (
	"regexp/syntax"
	"slices"
	"testing"
)

// TestLiterals: the texts are part of every match, and long where there is a choice.
func TestLiterals(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		`keys and values`:                         {"keys and values"},
		`(?:split|shared?) by (?:tensor|layers?)`: {"tensor", "layer"},
		`\d+ letters`:                             {" letters"},
		`(?:team|groups?)`:                        {"team", "group"},
		`(?:ab){2,3}c`:                            {"ab"},
		`a*`:                                      nil,
		`(?:a|\d)`:                                nil,
		`(?i)team`:                                nil,
		`(?:xy)*|z`:                               nil,
	} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := literals(re); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// TestPhrasesHaveLiterals: no phrase is searched for in every passage.
func TestPhrasesHaveLiterals(t *testing.T) {
	t.Parallel()
	list, err := retired()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if len(p.literals) == 0 {
			t.Errorf("%s: no literal that every match contains", p.Pattern)
		}
	}
}
