package tokenizer

import (
	"sync"
	"unicode"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// Character classes of normalizers, pre-tokenizers and added tokens, built on first
// use. Each follows the Unicode version of the library that Hugging Face tokenizers
// uses; see unicodedelta.go.
var (
	wordClass = sync.OnceValue(func() *regexp.Class { return regexp.NewClass(rustWordSet()) })

	spaceClass = sync.OnceValue(func() *regexp.Class { return regexp.NewClass(regexp.Space()) })

	numericClass = sync.OnceValue(func() *regexp.Class {
		return regexp.NewClass(regexp.Category("N").Union(rustNumericAdded))
	})

	punctuationClass = sync.OnceValue(func() *regexp.Class {
		ascii := regexp.Set{'!', '/', ':', '@', '[', '`', '{', '~'}
		set := regexp.Category("P").Intersect(punctuationRemoved.Negate())
		return regexp.NewClass(set.Union(punctuationAdded).Union(ascii))
	})

	// bertMarkClass is the class of accents that BertNormalizer strips.
	bertMarkClass = sync.OnceValue(func() *regexp.Class {
		return regexp.NewClass(regexp.Category("Mn").Intersect(bertMarksRemoved.Negate()).Union(bertMarksAdded))
	})

	// accentClass is the class of accents that StripAccents strips.
	accentClass = sync.OnceValue(func() *regexp.Class {
		return regexp.NewClass(regexp.Category("M").Intersect(accentsRemoved.Negate()).Union(accentsAdded))
	})

	// bertControlClass is the class of control characters that BertNormalizer drops.
	bertControlClass = sync.OnceValue(func() *regexp.Class {
		set := regexp.Table(unicode.Cc, unicode.Cf, unicode.Co).Intersect(bertControlRemoved.Negate())
		return regexp.NewClass(set.Union(regexp.Set{0, 0, 0xfffd, 0xfffd}))
	})

	scriptsUnknownClass = sync.OnceValue(func() *regexp.Class { return regexp.NewClass(scriptsUnknown) })

	undecomposedClass = sync.OnceValue(func() *regexp.Class { return regexp.NewClass(undecomposed) })
)

// rustWordSet is \w of Rust's regex crate: Alphabetic, marks, decimal digits, connector
// punctuation and the two joiners (UTS #18).
func rustWordSet() regexp.Set {
	return regexp.Alphabetic().Union(regexp.Category("M", "Nd", "Pc")).Union(regexp.Set{0x200c, 0x200d})
}
