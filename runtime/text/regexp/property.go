package regexp

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Space returns Oniguruma's \s for UTF-8 text.
func Space() Set { return Table(unicode.White_Space) }

func digitSet() Set { return Category("Nd") }

func wordSet() Set {
	return Alphabetic().Union(Category("M", "Nd", "Pc")).Union(onigurumaWord)
}

func hexSet() Set { return Set{'0', '9', 'A', 'F', 'a', 'f'} }

// wordClass is the class of \w and \b.
var wordClass = sync.OnceValue(func() *Class { return NewClass(wordSet()) })

// Alphabetic returns Unicode's derived property Alphabetic.
func Alphabetic() Set {
	return Category("L", "Nl").Union(Table(unicode.Other_Alphabetic)).Union(onigurumaAlphabetic)
}

// Category returns the union of general categories in Oniguruma's version of Unicode.
func Category(names ...string) Set {
	var pairs []rune
	for _, name := range names {
		pairs = append(pairs, Table(unicode.Categories[name])...)
		for category, added := range onigurumaAdded {
			if strings.HasPrefix(category, name) {
				pairs = append(pairs, added...)
			}
		}
	}
	return normalizeSet(pairs)
}

// Property returns the code points of a property in ECMA-262's spelling: a general
// category, a script, a binary property, or one of them after its name and an equals
// sign.
func Property(name string) (Set, error) {
	key, value, isPair := strings.Cut(name, "=")
	switch {
	case !isPair && name != "":
		return propertySet(name)
	case isPair && slices.Contains([]string{"General_Category", "gc", "Script", "sc"}, key):
		return propertySet(value)
	}
	return nil, fmt.Errorf("unknown character property %.40q", name)
}

// propertySet returns the set of \p{name}: a general category, a script or a POSIX
// class. Case, spaces, '_' and '-' in the name are ignored.
func propertySet(name string) (Set, error) {
	negated := strings.HasPrefix(name, "^")
	key := foldName(strings.TrimPrefix(name, "^"))
	set, ok := lookupProperty(key)
	if !ok {
		return nil, fmt.Errorf("unknown character property %q", name)
	}
	if negated {
		set = set.Negate()
	}
	return set, nil
}

func foldName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

func lookupProperty(key string) (Set, bool) {
	if set, ok := posixSet(key); ok {
		return set, true
	}
	for alias, short := range longCategories {
		if key == alias {
			key = short
		}
	}
	for name := range unicode.Categories {
		if foldName(name) == key && key != "cn" && key != "c" {
			return Category(name), true
		}
	}
	if key == "cn" || key == "c" {
		assigned := Category("L", "M", "N", "P", "S", "Z").Union(Table(unicode.C))
		if key == "c" {
			return assigned.Negate().Union(Table(unicode.C)), true
		}
		return assigned.Negate(), true
	}
	for name, table := range unicode.Scripts {
		if foldName(name) == key {
			return Table(table).Union(onigurumaAdded["script:"+name]), true
		}
	}
	for name, table := range unicode.Properties {
		if foldName(name) == key {
			return Table(table), true
		}
	}
	set, ok := emojiProperties[key]
	return set, ok
}

var longCategories = map[string]string{
	"letter": "l", "uppercaseletter": "lu", "lowercaseletter": "ll", "titlecaseletter": "lt",
	"modifierletter": "lm", "otherletter": "lo", "mark": "m", "nonspacingmark": "mn",
	"spacingmark": "mc", "enclosingmark": "me", "number": "n", "decimalnumber": "nd",
	"letternumber": "nl", "othernumber": "no", "punctuation": "p", "connectorpunctuation": "pc",
	"dashpunctuation": "pd", "openpunctuation": "ps", "closepunctuation": "pe",
	"initialpunctuation": "pi", "finalpunctuation": "pf", "otherpunctuation": "po",
	"symbol": "s", "mathsymbol": "sm", "currencysymbol": "sc", "modifiersymbol": "sk",
	"othersymbol": "so", "separator": "z", "spaceseparator": "zs", "lineseparator": "zl",
	"paragraphseparator": "zp", "other": "c", "control": "cc", "format": "cf", "unassigned": "cn",
}

// posixSet returns the set of [[:name:]] and \p{name}.
func posixSet(key string) (Set, bool) {
	switch key {
	case "alpha", "alphabetic":
		return Alphabetic(), true
	case "digit":
		return digitSet(), true
	case "alnum":
		return Alphabetic().Union(digitSet()), true
	case "upper", "uppercase":
		return Category("Lu").Union(Table(unicode.Other_Uppercase)), true
	case "lower", "lowercase":
		return Category("Ll").Union(Table(unicode.Other_Lowercase)), true
	case "space", "whitespace":
		return Space(), true
	case "blank":
		return Table(unicode.Zs).Union(Set{'\t', '\t'}), true
	case "punct":
		return Category("P", "S"), true
	case "cntrl":
		return Table(unicode.Cc), true
	case "xdigit":
		return hexSet(), true
	case "word":
		return wordSet(), true
	case "ascii":
		return Set{0, 0x7f}, true
	case "any":
		return Set{0, unicode.MaxRune}, true
	case "graph":
		return Category("L", "M", "N", "P", "S", "Cf", "Co"), true
	case "print":
		return Category("L", "M", "N", "P", "S", "Cf", "Co", "Zs"), true
	}
	return nil, false
}
