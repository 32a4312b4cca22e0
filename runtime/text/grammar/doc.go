// Package grammar restricts what a model may write: a JSON schema, a regular
// expression or a grammar in GBNF becomes a network of byte automata that call
// one another, and the network tells, after every token, which tokens may come
// next.
//
//	schema, regex, GBNF ──▶ builder ──▶ Grammar (automata over bytes)
//	Vocabulary (trie of the tokens' bytes) ──┐
//	Grammar ────────────────────────────────▶ Matcher: Mask, Accept
//
// A position is the set of all places in which the network may be, each with
// the calls that wait below it. Positions are found as they are needed and
// remembered with their transitions and masks, so that a walk over the trie is
// mostly a walk over tables. What can grow has a limit and an error: grammars
// come with requests and are not trusted.
package grammar
