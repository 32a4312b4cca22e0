package tokenizer

import (
	"sync"
	"unicode"
)

// Classes used by normalisers, pre-tokenizers and added tokens, built on first
// use. Each follows the Unicode version of the library that Hugging Face asks;
// see unicodedelta.go.
var (
	wordClass = sync.OnceValue(func() *runeClass { return newRuneClass(rustWordSet()) })

	// regexWordClass is what \w and \b of patterns go by.
	regexWordClass = sync.OnceValue(func() *runeClass { return newRuneClass(wordSet()) })

	spaceClass = sync.OnceValue(func() *runeClass { return newRuneClass(spaceSet()) })

	numericClass = sync.OnceValue(func() *runeClass {
		return newRuneClass(categorySet("N").union(rustNumericAdded))
	})

	punctuationClass = sync.OnceValue(func() *runeClass {
		ascii := runeSet{'!', '/', ':', '@', '[', '`', '{', '~'}
		set := categorySet("P").intersect(punctuationRemoved.negate())
		return newRuneClass(set.union(punctuationAdded).union(ascii))
	})

	// bertMarkClass is what BertNormalizer strips as accents.
	bertMarkClass = sync.OnceValue(func() *runeClass {
		return newRuneClass(categorySet("Mn").intersect(bertMarksRemoved.negate()).union(bertMarksAdded))
	})

	// accentClass is what StripAccents strips.
	accentClass = sync.OnceValue(func() *runeClass {
		return newRuneClass(categorySet("M").intersect(accentsRemoved.negate()).union(accentsAdded))
	})

	// bertControlClass is what BertNormalizer drops as control characters.
	bertControlClass = sync.OnceValue(func() *runeClass {
		set := tableSet(unicode.Cc, unicode.Cf, unicode.Co).intersect(bertControlRemoved.negate())
		return newRuneClass(set.union(runeSet{0, 0, 0xfffd, 0xfffd}))
	})

	scriptsUnknownClass = sync.OnceValue(func() *runeClass { return newRuneClass(scriptsUnknown) })

	undecomposedClass = sync.OnceValue(func() *runeClass { return newRuneClass(undecomposed) })
)

// rustWordSet is \\w of Rust's regex crate: Alphabetic, marks, decimal digits,
// connector punctuation and the two joiners (Unicode annex 18).
func rustWordSet() runeSet {
	return alphabeticSet().union(categorySet("M", "Nd", "Pc")).union(runeSet{0x200c, 0x200d})
}
