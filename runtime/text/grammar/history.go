package grammar

import (
	"slices"
	"sort"
	"strings"
)

// A history is what arrays with unique items, and objects with unique names, need to
// remember of a text: the containers that are open since the outermost of these began,
// and their items or names so far. Histories do not change; each byte leads to a new one.
type history struct {
	level           *level // the innermost open container; nil outside of these containers
	quoted, escaped bool   // in a string
	length          int    // of the text since the outermost of them began
}

// A level is an open container.
type level struct {
	up     *level
	array  bool
	unique bool
	done   bool   // its last item or name has ended
	start  int    // where its current item or name starts
	items  []item // if they are unique, sorted by key
}

// An item is an item of an array or a name of an object.
type item struct {
	key   string // equal for equal values; the text of all but objects
	value any    // of an item with an object, the members of which may come in any order
}

// maxUnique is the number of unique items or names after which a container ends, if it may.
// The items are copied when one is added.
const maxUnique = 4096

// next returns the history after a byte; ok is false if an item is equal to an earlier
// one. text is the text since the outermost container began, without white space outside
// of strings; unique reports whether the byte opens a container with unique items.
func (h history) next(text []byte, c byte, unique bool) (after history, extended []byte, ok bool) {
	switch {
	case h.level == nil && !unique || !h.quoted && c == ' ':
		return h, text, true
	case h.level == nil:
		text = nil // points share no memory unless they have the same text
	}
	text = append(text[:h.length], c)
	h.length++
	ok = true
	switch {
	case h.escaped:
		h.escaped = false
	case h.quoted && c == '\\':
		h.escaped = true
	case c == '"':
		if h.quoted = !h.quoted; !h.quoted {
			ok = h.end(text)
		}
	case h.quoted:
	case c == '[' || c == '{':
		h.level = &level{up: h.level, array: c == '[', unique: unique, start: h.length}
	case c == ',':
		if ok = h.end(text[:h.length-1]); ok {
			l := *h.level
			l.start, l.done = h.length, false
			h.level = &l
		}
	case c == ']' || c == '}':
		if !h.end(text[:h.length-1]) {
			return h, text, false
		}
		if h.level = h.level.up; h.level == nil {
			return history{}, nil, true
		}
		ok = h.end(text)
	}
	return h, text, ok
}

// end ends the current item or name at the end of a text, unless it has ended. It reports
// whether it differs from the earlier ones, if it must.
func (h *history) end(text []byte) bool {
	l := h.level
	if !l.array && !l.unique || l.done || len(text) == l.start {
		return true
	}
	ended := *l
	ended.done = true
	if l.unique {
		one, err := newItem(text[l.start:])
		if err != nil {
			return false
		}
		at, found := slices.BinarySearchFunc(l.items, one.key, func(i item, key string) int { return strings.Compare(i.key, key) })
		if found {
			return false
		}
		ended.items = make([]item, 0, len(l.items)+1)
		ended.items = append(append(append(ended.items, l.items[:at]...), one), l.items[at:]...)
	}
	h.level = &ended
	return true
}

// full reports whether the container of the current item has so many unique items or
// names, with the current one, that it should end.
func (h history) full() bool {
	if h.level == nil || h.quoted {
		return false
	}
	n := len(h.level.items)
	if h.level.unique && !h.level.done {
		n++
	}
	return n >= maxUnique
}

// shut returns the bracket that closes a level.
func (l *level) shut() byte {
	if l.array {
		return ']'
	}
	return '}'
}

// same reports whether two histories of one text are equal: it began at the same place,
// and the same open containers have unique items.
func (h history) same(o history) bool {
	if h.length != o.length || h.quoted != o.quoted || h.escaped != o.escaped {
		return false
	}
	a, b := h.level, o.level
	for ; a != b; a, b = a.up, b.up {
		if a == nil || b == nil || a.unique != b.unique {
			return false
		}
	}
	return true
}

// newItem returns the item with a text. Equal values are written alike, except for the
// order of members, and for numbers of so many digits that doubles do not distinguish
// them. An error reports an item that is too deep or too long to be compared.
func newItem(text []byte) (item, error) {
	one := item{key: string(text)}
	if text[0] == '"' || !strings.ContainsAny(one.key, "{.eE") {
		return one, nil
	}
	v, err := readJSON(text)
	if err != nil {
		return one, err
	}
	if one.key = keyOf(v); strings.Contains(one.key, "{") {
		one.value = v
	}
	return one, nil
}

// itemsAlike returns the items of a sorted list that an item that begins with text may
// become equal to.
func itemsAlike(list []item, text []byte) []item {
	if len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		var out []item
		begin := string(text)
		for _, i := range list {
			if i.begins(begin) {
				out = append(out, i)
			}
		}
		return out
	}
	list = list[sort.Search(len(list), func(i int) bool { return list[i].key >= string(text) }):]
	return list[:sort.Search(len(list), func(i int) bool {
		key := list[i].key
		return len(key) < len(text) || key[:len(text)] != string(text)
	})]
}

func (i item) begins(text string) bool {
	if i.value == nil {
		return strings.HasPrefix(i.key, text)
	}
	rest, ok := begin(i.value, text, func(string) {})
	return ok && rest == ""
}

// following calls add with what may follow in an item that begins with text, up to the
// next choice between members.
func (i item) following(text []byte, add func(string)) {
	if i.value == nil {
		add(i.key[len(text):])
	} else {
		begin(i.value, string(text), add)
	}
}

// begin reports whether text is the beginning of the JSON of a value, with the members of
// objects in any order, or continues behind it with rest. If text ends inside of a string
// or a number, it calls add with what may follow there.
func begin(v any, text string, add func(string)) (rest string, ok bool) {
	switch v := v.(type) {
	case []any:
		rest, ok = cut("[", text)
		for i := 0; i < len(v) && ok; i++ {
			if i > 0 {
				rest, ok = cut(",", rest)
			}
			if ok {
				rest, ok = begin(v[i], rest, add)
			}
		}
		if ok {
			rest, ok = cut("]", rest)
		}
		return rest, ok
	case *object:
		return beginObject(v, text, add)
	}
	s := keyOf(v)
	if rest, ok = cut(s, text); ok && text != "" && len(text) < len(s) {
		add(s[len(text):])
	}
	return rest, ok
}

func beginObject(o *object, text string, add func(string)) (rest string, ok bool) {
	rest, ok = cut("{", text)
	left := slices.Clone(o.keys)
	for len(left) > 0 && ok && rest != "" {
		if len(left) < len(o.keys) {
			rest, ok = cut(",", rest)
		}
		if !ok || rest == "" {
			return rest, ok
		}
		name := -1
		var after string
		for i, k := range left {
			s := writeJSON(k) + ":"
			if a, begins := cut(s, rest); begins {
				if name, after = i, a; len(rest) < len(s) {
					add(s[len(rest):] + keyOf(o.values[k]))
				}
			}
		}
		if name < 0 {
			return rest, false
		}
		rest, ok = begin(o.values[left[name]], after, add)
		left = slices.Delete(left, name, name+1)
	}
	if ok {
		rest, ok = cut("}", rest)
	}
	return rest, ok
}

// cut removes s from the beginning of text, or reports whether s begins with text.
func cut(s, text string) (rest string, ok bool) {
	if len(text) < len(s) {
		return "", strings.HasPrefix(s, text)
	}
	return strings.CutPrefix(text, s)
}
