package policy

import (
	"math"
	"sort"
)

// unlimited is more tokens than any step has.
const unlimited = 1 << 30

// promptBudget is how many tokens of prompts a step may take beside those that it
// has already, so that it lasts about as long as it may.
func (in *Input) promptBudget(taken int) int {
	limit := in.Objective.StepTime.Seconds()
	if limit <= 0 {
		return unlimited
	}
	fixed, perToken := in.Times.line.estimate()
	if perToken <= 0 {
		return tileRows
	}
	waiting := in.waitingEach()
	if math.IsInf(waiting, 1) {
		if !in.off(IdleStretch) {
			limit *= idleStretch
		}
	} else {
		if !in.off(DecodeStretch) {
			limit = max(limit, stretch*(fixed+perToken*float64(len(in.Requests))))
		}
		if waiting >= fewDecoding && !in.off(BurstStretch) {
			limit = max(limit, min(waiting*limit, burstStretch*in.Objective.StepTime.Seconds()))
		}
	}
	room := max(1, int(min((limit-fixed)/perToken-float64(taken), unlimited)))
	if in.off(TileRounding) {
		return room
	}
	total := (taken + room + tileRows/2) / tileRows * tileRows
	if total-taken < tileRows/2 { // a prompt gets something, however short the step
		total += tileRows
	}
	return total - taken
}

// draftLimit is how many drafted tokens a step may take beside those of decoding
// requests. With less than one for each there are none: who is ahead of the
// others by one token asks again while they generate.
func (in *Input) draftLimit(decoding int) int {
	if in.Objective.StepTime <= 0 || in.off(DraftLimit) {
		return unlimited
	}
	most := stretch * in.Times.Step(1)
	n := sort.Search(timed-min(decoding, timed), func(n int) bool { return in.Times.Step(decoding+n+1) > most })
	if n < decoding {
		return 0
	}
	return n
}

// drafts gives the drafts of the requests in a step so many tokens, as far as the
// step has them left, to each the same: none takes a token, a row or a page from
// a request that waits for one.
func (in *Input) drafts(out *Batch, left *Limits, most int) {
	drafting := 0
	for _, p := range out.Parts {
		if in.Requests[p.Request].Draft > 0 {
			drafting++
		}
	}
	tokens := min(left.Tokens, most)
	for i := range out.Parts {
		p := &out.Parts[i]
		r := &in.Requests[p.Request]
		if r.Draft == 0 {
			continue
		}
		n := max(0, min(r.Draft, tokens/drafting, left.Rows/drafting))
		drafting--
		done := r.Done + r.Cached + p.Tokens
		if need := left.pagesFor(done+n) - p.Pages; need > 0 && out.Short < 0 && need <= left.Pages {
			p.Pages += need
			left.Pages -= need
		}
		p.Draft = max(0, min(n, p.Pages*left.PageRows-done))
		tokens -= p.Draft
		left.Tokens -= p.Draft
		left.Rows -= p.Draft
	}
}
