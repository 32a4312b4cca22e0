// Package regexp matches the regular expressions of published tokenizers with the
// semantics of Oniguruma, the engine of Hugging Face tokenizers: backtracking on UTF-8
// text with lookaround, possessive quantifiers and class intersections. It also
// provides the character classes that such patterns name.
//
// A step budget bounds the time of patterns with catastrophic backtracking.
package regexp
