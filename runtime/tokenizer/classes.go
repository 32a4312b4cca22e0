package tokenizer

import (
	"sync"
	"unicode"
)

// Classes used by the pre-tokenizers and by added tokens, built on first use.
var (
	wordClass        = sync.OnceValue(func() *runeClass { return newRuneClass(wordSet()) })
	spaceClass       = sync.OnceValue(func() *runeClass { return newRuneClass(spaceSet()) })
	numericClass     = sync.OnceValue(func() *runeClass { return newRuneClass(tableSet(unicode.N)) })
	punctuationClass = sync.OnceValue(func() *runeClass {
		ascii := runeSet{'!', '/', ':', '@', '[', '`', '{', '~'}
		return newRuneClass(tableSet(unicode.P).union(ascii))
	})
)
