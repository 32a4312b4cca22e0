//go:build unix

package cli

import "slices"

// startToken returns the token that every text starts with, or -1.
func (m *model) startToken() int {
	if m.manifest.AddBOS {
		return m.manifest.BOS
	}
	return -1
}

// A window is a run of tokens. Those from score on are scored, each given the
// tokens before it.
type window struct {
	tokens []int32
	score  int // at least 1
}

// cutWindows is the protocol of transformers' perplexity guide: windows of
// `context` positions start `stride` tokens apart. Each starts with the start
// token if the model uses one, and no text is skipped. Tokens that an earlier
// window scored are only context. The first token of a window without a start
// token has no context and is not scored.
func cutWindows(ids []int32, start, context, stride int) []window {
	var front []int32
	if start >= 0 {
		front = []int32{int32(start)}
	}
	size := context - len(front)
	var list []window
	done := 0
	for from := 0; done < len(ids); from += min(stride, size) {
		to := min(from+size, len(ids))
		list = append(list, window{
			tokens: append(slices.Clone(front), ids[from:to]...),
			score:  max(done-from+len(front), 1),
		})
		done = to
	}
	return list
}

// cutChunks is the protocol of llama.cpp's perplexity tool. The text, with the
// start token before it, is divided into whole chunks of `context` tokens. If
// the model uses a start token, it replaces the first token of each chunk. The
// tokens after the one at context/2 are scored. The remainder at the end and
// the stride are not used.
func cutChunks(ids []int32, start, context, _ int) []window {
	if start >= 0 {
		ids = append([]int32{int32(start)}, ids...)
	}
	var list []window
	for ; len(ids) >= context; ids = ids[context:] {
		w := window{tokens: ids[:context:context], score: context/2 + 1}
		if start >= 0 {
			w.tokens = slices.Clone(w.tokens)
			w.tokens[0] = int32(start)
		}
		list = append(list, w)
	}
	return list
}
