package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// A textTest is a condition on strings.
type textTest struct {
	testID
	text  string   // a pattern, or the name of a format
	words []string // a list of words
	path  string
}

// A testID identifies a test: tests with the same one are met by the same strings.
type testID struct {
	kind   testKind
	id     int32 // of the text or the words; see textID
	lo, hi int   // a length; hi < 0: no limit
	not    bool  // the string must not meet the condition
}

type testKind byte

const (
	testLength testKind = iota
	testPattern
	testFormat
	testWords
)

func lengthTest(lo, hi int, path string) textTest {
	return textTest{testID: testID{kind: testLength, lo: lo, hi: hi}, path: path}
}

func (w *schemaWriter) patternTest(text, path string) textTest {
	return textTest{testID: testID{kind: testPattern, id: w.textID("pattern " + text)}, text: text, path: path}
}

func (w *schemaWriter) formatTest(name, path string) textTest {
	return textTest{testID: testID{kind: testFormat, id: w.textID("format " + name)}, text: name, path: path}
}

func (w *schemaWriter) wordsTest(values []any, path string) textTest {
	t := textTest{testID: testID{kind: testWords}, path: path}
	for _, v := range values {
		t.words = append(t.words, v.(string))
	}
	if w.spend(weight(values)/8, path) {
		t.id = w.textID("words " + keyOf(values))
	}
	return t
}

// textID returns the number of a text. Equal texts have the same number.
func (w *schemaWriter) textID(text string) int32 {
	id, known := w.textIDs[text]
	if !known {
		id = int32(len(w.textIDs))
		w.textIDs[text] = id
	}
	return id
}

func testsKey(tests []textTest) string {
	keys := make([]string, len(tests))
	for i, t := range tests {
		keys[i] = fmt.Sprint(t.testID)
	}
	slices.Sort(keys)
	return strings.Join(keys, "\n")
}

// patternOf returns the pattern of a test in the strict reading or, with loose, in the
// loose one, in which any string may have any format. With narrow, it returns the narrow
// pattern of a format. It returns nil and records an error if the pattern is invalid.
func (w *schemaWriter) patternOf(t textTest, loose, narrow bool) *pattern {
	if t.kind == testFormat {
		if loose {
			return repeated(setOf(anyRune...), 0, -1)
		}
		return w.formatPattern(t.text, narrow)
	}
	key := patternKey{t.text, loose}
	p := w.patterns[key]
	if p == nil && w.spend(len(t.text)/4, t.path) {
		var err error
		if p, err = readPattern(t.text, loose); err != nil {
			w.fail(t.path, "%v", err)
			return nil
		}
		w.spend(p.size/2, t.path)
		w.patterns[key] = p
	}
	return p
}

type patternKey struct {
	text  string
	loose bool
}

// machines returns the machines of tests and their alphabet, in the current reading. A
// test that must fail is the complement of the other reading.
func (w *schemaWriter) machines(tests []textTest) ([]machine, *alphabet, error) {
	var sets [][]runeRange
	patterns := make([]*pattern, len(tests))
	for i, t := range tests {
		switch t.kind {
		case testWords:
			sets = append(sets, w.charactersOf(t)...)
		case testPattern, testFormat:
			if patterns[i] = w.patternOf(t, w.loose != t.not, len(tests) > 1); patterns[i] == nil {
				return nil, nil, w.err
			}
			sets = patterns[i].sets(sets)
		}
	}
	a, err := newAlphabet(append(sets, anyRune), func(n int) bool { return w.spend(n, tests[0].path) })
	if err != nil {
		return nil, nil, err
	}
	list := make([]machine, len(tests))
	for i, t := range tests {
		switch t.kind {
		case testLength:
			list[i] = counter{t.lo, t.hi}
		case testWords:
			list[i] = newWordList(t.words, a)
		default:
			spend := func(n int) bool { return w.spend(n, t.path) }
			g, err := newProgram(patterns[i], a, t.kind == testFormat, spend)
			if err != nil {
				return nil, nil, err
			}
			list[i] = g
		}
		if t.not {
			list[i] = complement{list[i]}
		}
	}
	return list, a, nil
}

// charactersOf returns the characters of a test's words, each once.
func (w *schemaWriter) charactersOf(t textTest) [][]runeRange {
	var sets [][]runeRange
	seen := map[rune]bool{}
	for _, word := range t.words {
		for _, c := range word {
			if !seen[c] {
				seen[c] = true
				sets = append(sets, []runeRange{{c, c}})
			}
		}
		if !w.spend(len(word), t.path) {
			break
		}
	}
	return sets
}

// sets appends the sets of characters in a pattern to a list.
func (p *pattern) sets(list [][]runeRange) [][]runeRange {
	if p.op == patternSet {
		list = append(list, p.ranges)
	}
	for _, kid := range p.kids {
		list = kid.sets(list)
	}
	return list
}

// automaton returns the automaton of the strings that meet all tests of one of the
// groups, in the current reading.
func (w *schemaWriter) automaton(groups [][]textTest, most int) (*automaton, error) {
	var u union
	var tests []textTest
	known := map[testID]int{}
	for _, group := range groups {
		var list []int
		for _, t := range group {
			n, ok := known[t.testID]
			if !ok {
				n = len(tests)
				known[t.testID] = n
				tests = append(tests, t)
			}
			list = append(list, n)
		}
		u.groups = append(u.groups, list)
	}
	machines, a, err := w.machines(tests)
	if err != nil {
		return nil, err
	}
	u.machines = machines
	return u.automaton(a, most, func(n int) bool { return w.spend(n, tests[0].path) })
}

// textFits reports whether a string meets a test, in the current reading.
func (w *schemaWriter) textFits(text string, t textTest) bool {
	if t.kind == testWords {
		return w.spend(len(t.words), t.path) && slices.Contains(t.words, text) != t.not
	}
	key := readTest{t.testID, w.loose}
	known, ok := w.tests[key]
	if !ok {
		list, a, err := w.machines([]textTest{t})
		if err != nil {
			w.fail(t.path, "%v", err)
			return false
		}
		known = testMachine{list[0], a}
		w.tests[key] = known
	}
	fits, err := known.run(text)
	if err != nil {
		w.fail(t.path, "%v", err)
	}
	return w.spend(len(text)/4, t.path) && fits && err == nil
}

// A readTest is a test in a reading.
type readTest struct {
	testID
	loose bool
}

// A testMachine runs a test on a string.
type testMachine struct {
	machine
	alphabet *alphabet
}

func (m testMachine) run(text string) (bool, error) {
	at, err := m.start()
	for _, c := range text {
		if err != nil || at == noState {
			return false, err
		}
		at, err = m.step(at, m.alphabet.of(c))
	}
	return at != noState && err == nil && m.accepts(at), err
}
