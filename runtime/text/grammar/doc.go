// Package grammar implements structured output. It compiles a JSON Schema, a regular
// expression or a GBNF grammar to a network of byte automata that call one another.
// After every token, the network determines which tokens may follow.
//
//	schema, regex, GBNF ──▶ builder ──▶ Grammar (automata over bytes)
//	Vocabulary (trie of the tokens' bytes) ──┐
//	Grammar ────────────────────────────────▶ Matcher: Mask, Accept
//
// A position is the set of all network states that the text so far can lead to, each
// with its stack of calls. Positions are computed when needed and cached with their
// transitions and masks, so a walk over the trie is mostly a sequence of table lookups.
// Most positions inside strings allow any text of certain characters, a run. The tokens of
// these characters are precomputed, and the walk visits only the others.
// Grammars come with requests and are not trusted: everything that can grow has a limit
// and returns an error.
package grammar
