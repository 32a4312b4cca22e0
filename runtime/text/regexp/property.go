package regexp

import (
	"fmt"
	"maps"
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
	set, ok := properties()[foldName(strings.TrimPrefix(name, "^"))]
	switch {
	case !ok:
		return nil, fmt.Errorf("unknown character property %.40q", name)
	case strings.HasPrefix(name, "^"):
		return set().Negate(), nil
	}
	return set(), nil
}

func foldName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

// properties returns the properties by their folded names. Each set is computed when it
// is needed, and once.
var properties = sync.OnceValue(func() map[string]func() Set {
	known := maps.Clone(posixSets)
	add := func(name string, set func() Set) {
		if name = foldName(name); known[name] == nil {
			known[name] = sync.OnceValue(set)
		}
	}
	assigned := func() Set { return Category("L", "M", "N", "P", "S", "Z").Union(Table(unicode.C)) }
	add("Cn", func() Set { return assigned().Negate() })
	add("C", func() Set { return assigned().Negate().Union(Table(unicode.C)) })
	for name := range unicode.Categories {
		add(name, func() Set { return Category(name) })
	}
	for alias, short := range longCategories {
		known[alias] = known[short]
	}
	for name, table := range unicode.Scripts {
		add(name, func() Set { return Table(table).Union(onigurumaAdded["script:"+name]) })
	}
	for name, table := range unicode.Properties {
		add(name, func() Set { return Table(table) })
	}
	for name, set := range emojiProperties {
		add(name, func() Set { return set })
	}
	return known
})

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

// posixSets are the sets of [[:name:]] and \p{name}.
var posixSets = map[string]func() Set{
	"alpha":      sync.OnceValue(Alphabetic),
	"alphabetic": sync.OnceValue(Alphabetic),
	"digit":      sync.OnceValue(digitSet),
	"alnum":      sync.OnceValue(func() Set { return Alphabetic().Union(digitSet()) }),
	"upper":      sync.OnceValue(upperSet),
	"uppercase":  sync.OnceValue(upperSet),
	"lower":      sync.OnceValue(lowerSet),
	"lowercase":  sync.OnceValue(lowerSet),
	"space":      sync.OnceValue(Space),
	"whitespace": sync.OnceValue(Space),
	"blank":      sync.OnceValue(func() Set { return Table(unicode.Zs).Union(Set{'\t', '\t'}) }),
	"punct":      sync.OnceValue(func() Set { return Category("P", "S") }),
	"cntrl":      sync.OnceValue(func() Set { return Table(unicode.Cc) }),
	"xdigit":     hexSet,
	"word":       sync.OnceValue(wordSet),
	"ascii":      func() Set { return Set{0, 0x7f} },
	"any":        func() Set { return Set{0, unicode.MaxRune} },
	"graph":      sync.OnceValue(func() Set { return Category("L", "M", "N", "P", "S", "Cf", "Co") }),
	"print":      sync.OnceValue(func() Set { return Category("L", "M", "N", "P", "S", "Cf", "Co", "Zs") }),
}

func upperSet() Set { return Category("Lu").Union(Table(unicode.Other_Uppercase)) }

func lowerSet() Set { return Category("Ll").Union(Table(unicode.Other_Lowercase)) }
