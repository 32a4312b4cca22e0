// Package regexp matches the regular expressions of published tokenizers as
// Oniguruma does, by which Hugging Face tokenizers go: backtracking, with
// lookaround, possessive repeats and class intersections, on UTF-8 text. It has
// the classes of characters too that such patterns name.
//
// A budget of steps bounds the time of patterns that would backtrack without
// end.
package regexp
