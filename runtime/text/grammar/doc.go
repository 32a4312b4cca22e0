// Package grammar implements structured output. It compiles a JSON Schema, a regular
// expression or a GBNF grammar to a network of byte automata that call one another.
// After every token, the network determines which tokens may follow.
//
//	schema, regex, GBNF ──▶ builder ──▶ Grammar (automata over bytes)
//	Vocabulary (trie of the tokens' bytes) ──┐
//	Grammar ────────────────────────────────▶ Matcher: Mask, Accept
//
// A JSON Schema is read as a Boolean expression (expr) over shapes. A shape is a set of
// values of one type: a range of numbers, strings that meet tests, arrays, objects. Shapes
// can be intersected and complemented, so the expression becomes a list of alternatives
// for each type, which are then written to the network. Patterns, formats, lengths and
// words that apply to one string become one deterministic automaton. Patterns and formats
// have two readings, because validators differ. The strict one is written; a complement
// is that of the loose one, so a text is valid in every reading.
//
// A position is the set of all network states that the text so far can lead to, each
// with its stack of calls. Positions are computed when needed and cached with their
// transitions and masks, so a walk over the trie is mostly a sequence of table lookups.
// Most positions inside strings allow any text of certain characters, a run. The tokens of
// these characters are precomputed, and the walk visits only the others.
// Grammars come with requests and are not trusted: everything that can grow has a limit
// and returns an error.
package grammar
