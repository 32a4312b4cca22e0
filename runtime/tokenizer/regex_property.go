package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
)

// Shorthand classes as Oniguruma reads them for UTF-8 text.
func spaceSet() runeSet { return tableSet(unicode.White_Space) }
func digitSet() runeSet { return tableSet(unicode.Nd) }
func wordSet() runeSet {
	return tableSet(unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)
}
func hexSet() runeSet { return runeSet{'0', '9', 'A', 'F', 'a', 'f'} }

// alphabeticSet is Unicode's derived property Alphabetic.
func alphabeticSet() runeSet { return tableSet(unicode.L, unicode.Nl, unicode.Other_Alphabetic) }

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
	if key == "cn" {
		return tableSet(unicode.C, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z).negate(), true
	}
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts, unicode.Properties} {
		for name, table := range tables {
			if foldName(name) == key {
				return tableSet(table), true
			}
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
		return tableSet(unicode.Lu, unicode.Other_Uppercase), true
	case "lower", "lowercase":
		return tableSet(unicode.Ll, unicode.Other_Lowercase), true
	case "space", "whitespace":
		return spaceSet(), true
	case "blank":
		return tableSet(unicode.Zs).union(runeSet{'\t', '\t'}), true
	case "punct":
		return tableSet(unicode.P).union(runeSet{'$', '$', '+', '+', '<', '>', '^', '^', '`', '`', '|', '|', '~', '~'}), true
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
		return tableSet(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Cf, unicode.Co), true
	case "print":
		return tableSet(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Cf, unicode.Co, unicode.Zs), true
	}
	return nil, false
}
