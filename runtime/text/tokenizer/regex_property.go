package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
)

// Shorthand classes as Oniguruma reads them for UTF-8 text.
func spaceSet() runeSet { return tableSet(unicode.White_Space) }
func digitSet() runeSet { return categorySet("Nd") }
func wordSet() runeSet {
	return alphabeticSet().union(categorySet("M", "Nd", "Pc")).union(onigurumaWord)
}
func hexSet() runeSet { return runeSet{'0', '9', 'A', 'F', 'a', 'f'} }

// alphabeticSet is Unicode's derived property Alphabetic.
func alphabeticSet() runeSet {
	return categorySet("L", "Nl").union(tableSet(unicode.Other_Alphabetic)).union(onigurumaAlphabetic)
}

// categorySet joins general categories, brought up to Oniguruma's Unicode.
func categorySet(names ...string) runeSet {
	var pairs []rune
	for _, name := range names {
		pairs = append(pairs, tableSet(unicode.Categories[name])...)
		for category, added := range onigurumaAdded {
			if strings.HasPrefix(category, name) {
				pairs = append(pairs, added...)
			}
		}
	}
	return normaliseSet(pairs)
}

// propertySet resolves the name inside \p{…}: a general category, a script or
// a POSIX class; case, spaces, '_' and '-' in the name do not matter.
func propertySet(name string) (runeSet, error) {
	negated := strings.HasPrefix(name, "^")
	key := foldName(strings.TrimPrefix(name, "^"))
	set, ok := lookupProperty(key)
	if !ok {
		return nil, fmt.Errorf("unknown character property %q", name)
	}
	if negated {
		set = set.negate()
	}
	return set, nil
}

func foldName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

func lookupProperty(key string) (runeSet, bool) {
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
			return categorySet(name), true
		}
	}
	if key == "cn" || key == "c" {
		assigned := categorySet("L", "M", "N", "P", "S", "Z").union(tableSet(unicode.C))
		if key == "c" {
			return assigned.negate().union(tableSet(unicode.C)), true
		}
		return assigned.negate(), true
	}
	for name, table := range unicode.Scripts {
		if foldName(name) == key {
			return tableSet(table).union(onigurumaAdded["script:"+name]), true
		}
	}
	for name, table := range unicode.Properties {
		if foldName(name) == key {
			return tableSet(table), true
		}
	}
	return nil, false
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

// posixSet gives the classes of [[:name:]] and \p{name}.
func posixSet(key string) (runeSet, bool) {
	switch key {
	case "alpha", "alphabetic":
		return alphabeticSet(), true
	case "digit":
		return digitSet(), true
	case "alnum":
		return alphabeticSet().union(digitSet()), true
	case "upper", "uppercase":
		return categorySet("Lu").union(tableSet(unicode.Other_Uppercase)), true
	case "lower", "lowercase":
		return categorySet("Ll").union(tableSet(unicode.Other_Lowercase)), true
	case "space", "whitespace":
		return spaceSet(), true
	case "blank":
		return tableSet(unicode.Zs).union(runeSet{'\t', '\t'}), true
	case "punct":
		return categorySet("P", "S"), true
	case "cntrl":
		return tableSet(unicode.Cc), true
	case "xdigit":
		return hexSet(), true
	case "word":
		return wordSet(), true
	case "ascii":
		return runeSet{0, 0x7f}, true
	case "any":
		return runeSet{0, unicode.MaxRune}, true
	case "graph":
		return categorySet("L", "M", "N", "P", "S", "Cf", "Co"), true
	case "print":
		return categorySet("L", "M", "N", "P", "S", "Cf", "Co", "Zs"), true
	}
	return nil, false
}
