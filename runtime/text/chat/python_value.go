package chat

import (
	"strconv"
	"strings"
)

// A pythonValue converts a Python literal to JSON while it is read. What it writes is
// valid JSON for any text: a text that is no literal becomes a string. Lists and tuples
// become arrays, dicts objects.
type pythonValue struct {
	close string // a marker that ends the value wherever it occurs; "": none
	mark  string // quote of strings without escapes; "": none
	drop  bool   // write nothing

	out    strings.Builder
	stack  []pythonFrame
	part   valuePart
	quote  string // of the current string
	wrong  bool   // the text is not a literal
	inside bool   // something of the value was read
	seen   int    // bytes of the current word that were read
	depth  int    // of the brackets in them
}

// A pythonFrame is an open list or dict.
type pythonFrame struct {
	dict  bool
	count int
	value bool // in a dict: after the key
}

// A valuePart is a state of a pythonValue.
type valuePart int

const (
	beforeValue valuePart = iota
	inString
	behindValue // in a list or a dict
)

// maxPythonDepth limits the nesting of lists and dicts. Deeper ones become strings.
const maxPythonDepth = 100

// take returns the JSON written so far and forgets it.
func (v *pythonValue) take() string {
	out := v.out.String()
	v.out.Reset()
	if v.drop {
		return ""
	}
	return out
}

// read reads a part of the text. ended reports whether the value ends at n.
func (v *pythonValue) read(text string, last bool) (n int, ended bool) {
	for n < len(text) || last && v.part == beforeValue {
		var k int
		switch v.part {
		case inString:
			k, ended = v.string(text[n:], last)
		case beforeValue:
			k, ended = v.start(text[n:], last)
		default:
			k, ended = v.behind(text[n:], last)
		}
		if n += k; ended {
			return n, true
		}
		if k == 0 {
			break
		}
	}
	return n, false
}

// start reads the start of a value, or all of a word.
func (v *pythonValue) start(text string, last bool) (n int, ended bool) {
	switch s := v.atClose(text, last); {
	case s == bodyWaiting:
		return 0, false
	case s == bodyMoved || text == "": // text == "" with last
		return 0, v.finish()
	}
	if v.mark != "" {
		switch starts(text, v.mark, last) {
		case bodyWaiting:
			return 0, false
		case bodyMoved:
			return v.open(v.mark), false
		}
	}
	switch c := text[0]; c {
	case ' ', '\t', '\r', '\n':
		return 1, false
	case '"', '\'':
		triple := strings.Repeat(text[:1], 3)
		switch s := starts(text, triple, last); {
		case s == bodyMoved:
			return v.open(triple), false
		case s == bodyWaiting && len(text) < len(triple):
			return 0, false
		}
		return v.open(text[:1]), false
	case '[', '(', '{':
		if len(v.stack) >= maxPythonDepth || v.isKey() {
			break
		}
		v.item()
		v.stack = append(v.stack, pythonFrame{dict: c == '{'})
		v.out.WriteByte("[{"[b2i(c == '{')])
		return 1, false
	case ']', ')', '}':
		if len(v.stack) == 0 {
			return 0, v.null()
		}
		return 1, v.pop()
	case ',', ':', '=':
		v.wrong = true
		if len(v.stack) == 0 {
			return 0, v.null()
		}
		return 1, false
	}
	return v.word(text, last)
}

// open starts a string and returns the length of its quote.
func (v *pythonValue) open(quote string) int {
	v.item()
	v.out.WriteByte('"')
	v.part, v.quote = inString, quote
	return len(quote)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// atClose reports whether the closing marker is at the start of text.
func (v *pythonValue) atClose(text string, last bool) bodyState {
	if v.close == "" || text == "" {
		return bodyRefused
	}
	return starts(text, v.close, last)
}

// isKey reports whether the next value is the key of a dict.
func (v *pythonValue) isKey() bool {
	n := len(v.stack)
	return n > 0 && v.stack[n-1].dict && !v.stack[n-1].value
}

// item writes what precedes a value.
func (v *pythonValue) item() {
	v.inside = true
	if len(v.stack) == 0 {
		return
	}
	f := &v.stack[len(v.stack)-1]
	switch {
	case f.value:
		v.out.WriteString(": ")
	case f.count > 0:
		v.out.WriteString(", ")
	}
	if !f.value {
		f.count++
	}
	f.value = f.dict && !f.value
}

// after follows a value. It reports whether that was all.
func (v *pythonValue) after() bool {
	v.part = behindValue
	return len(v.stack) == 0
}

// null writes a value that is missing.
func (v *pythonValue) null() bool {
	v.item()
	v.wrong = true
	v.out.WriteString("null")
	return v.after()
}

// pop closes a list or a dict.
func (v *pythonValue) pop() bool {
	f := v.stack[len(v.stack)-1]
	if f.value {
		v.wrong = true
		v.out.WriteString(": null")
	}
	v.out.WriteByte("]}"[b2i(f.dict)])
	v.stack = v.stack[:len(v.stack)-1]
	return v.after()
}

// finish closes everything that is open.
func (v *pythonValue) finish() bool {
	v.wrong = true
	if !v.inside {
		v.null()
	}
	for len(v.stack) > 0 {
		v.pop()
	}
	return true
}

// behind reads what follows a value in a list or a dict.
func (v *pythonValue) behind(text string, last bool) (n int, ended bool) {
	switch s := v.atClose(text, last); s {
	case bodyWaiting:
		return 0, false
	case bodyMoved:
		return 0, v.finish()
	}
	f := &v.stack[len(v.stack)-1]
	switch c := text[0]; {
	case strings.IndexByte(spaces, c) >= 0:
	case c == ':' && f.value:
		v.part = beforeValue
	case c == ',':
		if f.value { // a key without a value
			v.wrong, f.value = true, false
			v.out.WriteString(": null")
		}
		v.part = beforeValue
	case c == ']' || c == ')' || c == '}':
		return 1, v.pop()
	default:
		v.wrong = true
	}
	return 1, false
}

// word reads a value without quotes: up to a comma, a closing bracket or, for the key
// of a dict, a colon.
func (v *pythonValue) word(text string, last bool) (n int, ended bool) {
	key := v.isKey()
	for n = v.seen; n < len(text); n++ {
		s := v.wordEnds(text[n:], key, last)
		if s == bodyMoved {
			break
		}
		if v.seen = n; s == bodyWaiting {
			return 0, false
		}
	}
	if v.seen = n; n == len(text) && !last {
		return 0, false
	}
	v.seen, v.depth = 0, 0
	v.item()
	out, known := pythonWord(strings.TrimSpace(text[:n]))
	v.wrong = v.wrong || !known
	if key && !strings.HasPrefix(out, `"`) {
		out = `"` + out + `"`
	}
	v.out.WriteString(out)
	return n, v.after()
}

// wordEnds reports whether a word ends before the character at the start of text. It
// counts the brackets in the word.
func (v *pythonValue) wordEnds(text string, key, last bool) bodyState {
	switch c := text[0]; {
	case strings.IndexByte("([{", c) >= 0:
		v.depth++
	case strings.IndexByte(")]}", c) >= 0:
		if v.depth == 0 {
			return bodyMoved
		}
		v.depth--
	case v.depth == 0 && (c == ',' || c == ':' && key):
		return bodyMoved
	default:
		return v.atClose(text, last)
	}
	return bodyRefused
}

// pythonWord returns the JSON of a value without quotes. One that is no literal becomes
// a string.
func pythonWord(word string) (out string, known bool) {
	switch word {
	case "True", "true":
		return "true", true
	case "False", "false":
		return "false", true
	case "None", "null":
		return "null", true
	}
	if n, err := strconv.ParseInt(word, 0, 64); err == nil && !isNumber(word) {
		return strconv.FormatInt(n, 10), true
	}
	if word != "" && strings.IndexByte("+-.0123456789", word[0]) >= 0 {
		if out, known = convertNumber(word, false); known {
			return out, true
		}
	}
	return jsonString(word), false
}

// pythonJSON converts a whole Python literal.
func pythonJSON(text string) (string, bool) {
	v := pythonValue{}
	n, ended := v.read(text, true)
	return v.take(), ended && !v.wrong && strings.TrimSpace(text[n:]) == ""
}
