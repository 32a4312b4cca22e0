package lora

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/orderedjson"
)

// maxMatching bounds the work of matching names with patterns, in units of about a
// nanosecond: a pattern without operators takes one for a name, and others take
// regexpWork for each of their bytes and each of the name's.
const (
	maxMatching = 1e9
	regexpWork  = 16
)

// maxRegexps is the most bytes of the patterns of a list that are regular expressions;
// compiled, they take some 100 times as much, but classes of Unicode thousands of times.
const maxRegexps = 16 << 10

// A patternList is rank_pattern or alpha_pattern: numbers by patterns of names. As in
// PEFT's get_pattern_key, a pattern is a regular expression for the end of a name from a
// component on, and the first match counts.
type patternList []pattern

type pattern struct {
	text  string
	expr  *regexp.Regexp // nil: text has no operators but "."
	value float64
}

// UnmarshalJSON reads an object in the order of its keys.
func (l *patternList) UnmarshalJSON(data []byte) error {
	type node struct {
		keys   []string
		values []node
		other  any
	}
	object, err := orderedjson.Read(data, 1, orderedjson.Maker[node]{
		Object: func(keys []string, values []node) node { return node{keys: keys, values: values} },
		List:   func([]node) node { return node{} },
		Other:  func(v any) node { return node{other: v} },
	})
	if err != nil {
		return err
	}
	total := 0
	for i, key := range object.keys {
		number, _ := object.values[i].other.(json.Number)
		value, err := number.Float64()
		if err != nil || math.IsInf(value, 0) {
			return fmt.Errorf("pattern %.40q: want a number", key)
		}
		p := pattern{text: key, value: value}
		if strings.ContainsAny(key, `\+*?()|[]{}^$`) {
			if total += len(key); total > maxRegexps {
				return fmt.Errorf("regular expressions of more than %d KB; write the layers' names instead", maxRegexps>>10)
			}
			if strings.Contains(key, "{") || strings.Contains(strings.ToLower(key), `\p`) { // a short one can mean a long expression
				return fmt.Errorf("pattern %.40q: counted repetition and classes of Unicode are not supported; write the layers' names instead", key)
			}
			if p.expr, err = regexp.Compile(`^(?:(?:.*\.)?(?:` + key + `))$`); err != nil {
				return fmt.Errorf("pattern %.40q: %w; write the layers' names instead", key, err)
			}
		}
		*l = append(*l, p)
	}
	return nil
}

// check returns an error if it would take long to match all names.
func (l patternList) check(pairs []pair) error {
	bytes := 0
	for i := range pairs {
		bytes += len(pairs[i].Name)
	}
	work := 0.0
	for i := range l {
		if l[i].expr == nil {
			work += float64(len(pairs))
		} else {
			work += regexpWork * float64(len(l[i].text)) * float64(bytes)
		}
	}
	if work > maxMatching {
		return fmt.Errorf("%d patterns for %d matrices are too many; write fewer regular expressions", len(l), len(pairs))
	}
	return nil
}

// lookup returns the value of the first pattern that matches the name.
func (l patternList) lookup(name string, otherwise float64) float64 {
	for i := range l {
		if l[i].matches(name) {
			return l[i].value
		}
	}
	return otherwise
}

func (p *pattern) matches(name string) bool {
	if p.expr != nil {
		return p.expr.MatchString(name)
	}
	from := len(name) - len(p.text)
	if from < 0 || from > 0 && name[from-1] != '.' {
		return false
	}
	for i := range len(p.text) {
		if p.text[i] != '.' && p.text[i] != name[from+i] {
			return false
		}
	}
	return true
}
