package decode

import (
	"maps"
	"math"
	"slices"
)

// Rules forbid or force tokens, like the settings of the same names in
// generation_config.json. The zero value changes nothing. Lengths count the whole
// decoder sequence, start token included.
type Rules struct {
	Penalty       float64   // repetition_penalty; 0 or 1: none
	PenaltyWindow int       // number of last tokens that Penalty counts; 0: all
	NoRepeat      int       // no_repeat_ngram_size: n-grams of this length do not repeat; 0: off
	BadWords      [][]int32 // bad_words_ids: token sequences that are never generated
	MinLength     int       // min_length: no EOS before it
	MinNew        int       // min_new_tokens: no EOS before so many tokens after the prompt
	ForcedBOS     []int32   // forced_bos_token_id: the token after the start token; empty: none
	ForcedEOS     []int32   // forced_eos_token_id: the token at MaxLength; empty: none
	Suppress      []int32   // suppress_tokens: never generated
	BeginSuppress []int32   // begin_suppress_tokens: never generated first
	SequenceBias  []Bias    // sequence_bias
	SourcePenalty float64   // encoder_repetition_penalty: above 1 favors tokens of Source; 0 or 1: off
	SourceRepeat  int       // encoder_no_repeat_ngram_size: no n-gram of Source is generated; 0: off
	Decay         Decay     // exponential_decay_length_penalty
	Finite        bool      // remove_invalid_values: replace infinities by the largest finite numbers
	Renormalize   bool      // renormalize_logits: log-softmax after all rules

	Source    []int32 // input of SourcePenalty and SourceRepeat: the encoder's tokens; nil: a Sampler sets the prompt's
	Prompt    int     // length of the prompt
	MaxLength int     // for ForcedEOS
	EOS       []int32 // tokens that end a sequence
}

// A Bias is added to the score of the last of its tokens if the others precede it.
type Bias struct {
	Tokens []int32
	Value  float64
}

// SingleBiases converts biases of single tokens, in the order of their ids.
func SingleBiases(of map[int32]float32) (list []Bias) {
	for _, id := range slices.Sorted(maps.Keys(of)) {
		list = append(list, Bias{[]int32{id}, float64(of[id])})
	}
	return list
}

// A Decay raises the scores of EOS tokens: k tokens after the first Start generated
// ones, by Factor^k - 1 times their absolute value. The zero value has no effect.
type Decay struct {
	Start  int
	Factor float64
}

var never = float32(math.Inf(-1))

// Apply changes the scores (logits or log-probabilities) of the token after a sequence,
// in the order in which transformers applies the settings.
func (r *Rules) Apply(scores []float32, sequence []int32) {
	n := len(sequence)
	for _, b := range r.SequenceBias {
		b.add(scores, sequence)
	}
	if r.SourcePenalty != 0 && r.SourcePenalty != 1 {
		penalizeAll(scores, r.Source, float32(1/r.SourcePenalty))
	}
	if r.Penalty != 0 && r.Penalty != 1 {
		penalizeAll(scores, recent(sequence, r.PenaltyWindow), float32(r.Penalty))
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

// readsSource reports whether a rule reads Source.
func (r *Rules) readsSource() bool {
	return r.SourcePenalty != 0 && r.SourcePenalty != 1 || r.SourceRepeat > 0
}

// plain reports whether the rules have no effect on any sequence.
func (r *Rules) plain() bool {
	return (r.Penalty == 0 || r.Penalty == 1) && r.NoRepeat == 0 && len(r.BadWords) == 0 && r.MinLength == 0 && r.MinNew == 0 &&
		len(r.Suppress) == 0 && len(r.BeginSuppress) == 0 && len(r.ForcedBOS) == 0 && len(r.ForcedEOS) == 0 &&
		len(r.SequenceBias) == 0 && !r.readsSource() &&
		r.Decay.Factor == 0 && !r.Finite && !r.Renormalize
}

// add adds the bias if the sequence ends with all of its tokens but the last.
func (b *Bias) add(scores []float32, sequence []int32) {
	n := len(b.Tokens)
	if n == 0 || n > 1 && (n > len(sequence) || !slices.Equal(sequence[len(sequence)-n+1:], b.Tokens[:n-1])) {
		return
	}
	if id := b.Tokens[n-1]; id >= 0 && int(id) < len(scores) {
		scores[id] += float32(b.Value)
	}
}

// decay applies Decay. Forbidden tokens remain forbidden.
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

// makeFinite replaces infinities by the largest finite numbers of the same sign.
func makeFinite(scores []float32) {
	for i, s := range scores {
		scores[i] = min(max(s, -math.MaxFloat32), math.MaxFloat32)
	}
}

// forbid forbids tokens.
func forbid(scores []float32, ids []int32) {
	for _, id := range ids {
		if id >= 0 && int(id) < len(scores) {
			scores[id] = never
		}
	}
}

// force forbids all but the given tokens, which get the score 0.
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

// penalizeAll applies the repetition penalty once to each token of a sequence.
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

// forbidRepeats forbids tokens that would complete an n-gram of text, which may be the
// sequence itself.
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

// forbidWord forbids the last token of a word if the sequence ends with the others. A
// word that is a single EOS token is allowed.
func (r *Rules) forbidWord(scores []float32, sequence, word []int32) {
	n := len(word)
	if n == 0 || n == 1 && slices.Contains(r.EOS, word[0]) {
		return
	}
	if n == 1 || n <= len(sequence) && slices.Equal(sequence[len(sequence)-n+1:], word[:n-1]) {
		forbid(scores, word[n-1:])
	}
}

// LogSoftmax writes the log-probabilities of a row of logits into to and returns it.
// The error is ErrNaN.
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
