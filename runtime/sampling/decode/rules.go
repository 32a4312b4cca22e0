package decode

import (
	"maps"
	"math"
	"slices"
)

// Rules forbid or force tokens, as the settings of the same names in
// generation_config.json do. The zero value changes nothing. Lengths count the
// whole sequence of the decoder, its start token included.
type Rules struct {
	Penalty       float64   // repetition_penalty; 0 or 1: none
	NoRepeat      int       // no_repeat_ngram_size: no n-gram comes twice; 0: may
	BadWords      [][]int32 // bad_words_ids: sequences that must not come
	MinLength     int       // min_length: no end before it
	MinNew        int       // min_new_tokens: no end before so many tokens after the prompt
	ForcedBOS     []int32   // forced_bos_token_id: the token after the start token; empty: any
	ForcedEOS     []int32   // forced_eos_token_id: the token at MaxLength; empty: any
	Suppress      []int32   // suppress_tokens: never come
	BeginSuppress []int32   // begin_suppress_tokens: never come first
	SequenceBias  []Bias    // sequence_bias
	SourcePenalty float64   // encoder_repetition_penalty: above 1 favors the tokens of Source; 0 or 1: none
	SourceRepeat  int       // encoder_no_repeat_ngram_size: no n-gram of Source comes; 0: may
	Decay         Decay     // exponential_decay_length_penalty
	Finite        bool      // remove_invalid_values: the lowest number in place of minus infinity
	Renormalize   bool      // renormalize_logits: log-probabilities again after all rules

	Source    []int32 // what SourcePenalty and SourceRepeat look at: the encoder's tokens, or a decoder's prompt
	Prompt    int     // tokens of the prompt
	MaxLength int     // for ForcedEOS
	EOS       []int32 // the tokens that end a sequence
}

// A Bias is added to the score of the last of its tokens after the others.
type Bias struct {
	Tokens []int32
	Value  float64
}

// SingleBiases are biases of tokens by themselves, in the order of their ids.
func SingleBiases(of map[int32]float32) (list []Bias) {
	for _, id := range slices.Sorted(maps.Keys(of)) {
		list = append(list, Bias{[]int32{id}, float64(of[id])})
	}
	return list
}

// A Decay makes the end likelier, by Factor^k - 1 times the size of its score,
// k tokens after the first Start that were generated. The zero value does not.
type Decay struct {
	Start  int
	Factor float64
}

var never = float32(math.Inf(-1))

// Apply changes the scores (logits or their log-probabilities) of the token
// after a sequence, in the order in which transformers applies its processors.
func (r *Rules) Apply(scores []float32, sequence []int32) {
	n := len(sequence)
	for _, b := range r.SequenceBias {
		b.add(scores, sequence)
	}
	if r.SourcePenalty != 0 && r.SourcePenalty != 1 {
		penalizeAll(scores, r.Source, float32(1/r.SourcePenalty))
	}
	if r.Penalty != 0 && r.Penalty != 1 {
		penalizeAll(scores, sequence, float32(r.Penalty))
	}
	if r.NoRepeat > 0 {
		forbidRepeats(scores, sequence, sequence, r.NoRepeat)
	}
	if r.SourceRepeat > 0 {
		forbidRepeats(scores, r.Source, sequence, r.SourceRepeat)
	}
	for _, word := range r.BadWords {
		r.forbidWord(scores, sequence, word)
	}
	if n < r.MinLength || n-r.Prompt < r.MinNew {
		forbid(scores, r.EOS)
	}
	if n == 1 && len(r.ForcedBOS) > 0 {
		force(scores, r.ForcedBOS)
	}
	if n == r.MaxLength-1 && len(r.ForcedEOS) > 0 {
		force(scores, r.ForcedEOS)
	}
	if r.Finite {
		makeFinite(scores)
	}
	r.decay(scores, n)
	forbid(scores, r.Suppress)
	begin := r.Prompt
	if r.Prompt <= 1 && len(r.ForcedBOS) > 0 {
		begin++
	}
	if n == begin {
		forbid(scores, r.BeginSuppress)
	}
	if r.Renormalize {
		if logs, err := LogSoftmax(nil, scores); err == nil {
			copy(scores, logs)
		}
	}
}

// plain says that the rules change nothing, whatever the sequence.
func (r *Rules) plain() bool {
	return (r.Penalty == 0 || r.Penalty == 1) && r.NoRepeat == 0 && len(r.BadWords) == 0 && r.MinLength == 0 && r.MinNew == 0 &&
		len(r.Suppress) == 0 && len(r.BeginSuppress) == 0 && len(r.ForcedBOS) == 0 && len(r.ForcedEOS) == 0 &&
		len(r.SequenceBias) == 0 && (r.SourcePenalty == 0 || r.SourcePenalty == 1) && r.SourceRepeat == 0 &&
		r.Decay.Factor == 0 && !r.Finite && !r.Renormalize
}

// add adds a bias where its tokens but the last end a sequence that is no
// shorter than all of them.
func (b *Bias) add(scores []float32, sequence []int32) {
	n := len(b.Tokens)
	if n == 0 || n > 1 && (n > len(sequence) || !slices.Equal(sequence[len(sequence)-n+1:], b.Tokens[:n-1])) {
		return
	}
	if id := b.Tokens[n-1]; id >= 0 && int(id) < len(scores) {
		scores[id] += float32(b.Value)
	}
}

// decay moves the scores of the ends up. One that is forbidden stays so.
func (r *Rules) decay(scores []float32, n int) {
	late := n - r.Prompt - r.Decay.Start
	if r.Decay.Factor == 0 || late <= 0 {
		return
	}
	grows := float32(math.Pow(r.Decay.Factor, float64(late)) - 1)
	for _, id := range r.EOS {
		if id >= 0 && int(id) < len(scores) && scores[id] != never {
			scores[id] += float32(math.Abs(float64(scores[id]))) * grows
		}
	}
}

// makeFinite replaces infinities by the largest numbers of their signs.
func makeFinite(scores []float32) {
	for i, s := range scores {
		scores[i] = min(max(s, -math.MaxFloat32), math.MaxFloat32)
	}
}

func forbid(scores []float32, ids []int32) {
	for _, id := range ids {
		if id >= 0 && int(id) < len(scores) {
			scores[id] = never
		}
	}
}

// force leaves only the given tokens, each certain.
func force(scores []float32, ids []int32) {
	for i := range scores {
		scores[i] = never
	}
	for _, id := range ids {
		if id >= 0 && int(id) < len(scores) {
			scores[id] = 0
		}
	}
}

// penalizeAll moves down the scores of the tokens of a sequence, once each.
func penalizeAll(scores []float32, sequence []int32, penalty float32) {
	seen := make([]uint64, (len(scores)+63)/64)
	for _, id := range sequence {
		if id < 0 || int(id) >= len(scores) || seen[id>>6]>>(id&63)&1 != 0 {
			continue
		}
		seen[id>>6] |= 1 << (id & 63)
		scores[id] = penalize(scores[id], penalty)
	}
}

// forbidRepeats forbids every token that would continue a sequence to an
// n-gram of a text, which may be the sequence.
func forbidRepeats(scores []float32, text, sequence []int32, n int) {
	if len(sequence)+1 < n {
		return
	}
	last := sequence[len(sequence)+1-n:]
	for i := 0; i+n <= len(text); i++ {
		if slices.Equal(text[i:i+n-1], last) {
			forbid(scores, text[i+n-1:i+n])
		}
	}
}

// forbidWord forbids the last token of a word after the others. A word that
// only ends the sequence may always come.
func (r *Rules) forbidWord(scores []float32, sequence, word []int32) {
	n := len(word)
	if n == 0 || n == 1 && slices.Contains(r.EOS, word[0]) {
		return
	}
	if n == 1 || n <= len(sequence) && slices.Equal(sequence[len(sequence)-n+1:], word[:n-1]) {
		forbid(scores, word[n-1:])
	}
}

// LogSoftmax writes the natural logarithms of the probabilities of a row of
// logits into to and returns it, or an error when one is NaN or none is finite.
func LogSoftmax(to, logits []float32) ([]float32, error) {
	top, ok := argmax(logits)
	if !ok {
		return nil, ErrNaN
	}
	shift := float64(logits[top])
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - shift)
	}
	shift += math.Log(sum)
	to = to[:0]
	for _, l := range logits {
		to = append(to, float32(float64(l)-shift))
	}
	return to, nil
}
