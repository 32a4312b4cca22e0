package policy

import (
	"math"
	"sort"
	"time"
)

// tileRows are the rows that most kernels compute together: a tile that is not
// full takes nearly as long.
const tileRows = 16

// idleStretch is how many times the step time a step may take while no request
// generates: nobody waits for a next token then, and larger steps compute prompts
// faster.
const idleStretch = 8

// stretch is how many times as long as without them a step with prompts may take,
// or one with drafts as one of a single token.
const stretch = 2

// barrierFactor is how much longer still a step may take in which the prompts of
// a burst are computed: larger steps are more efficient, and nobody of them gains
// from an earlier one's end.
const barrierFactor = 2

// unlimited is more tokens than any step has.
const unlimited = 1 << 30

// room is how many prompt tokens a step may take beside those of decoding
// requests that are in it already, so that it lasts about as long as limit.
func (in *Input) room(limit time.Duration, taken int) int {
	if limit <= 0 {
		return unlimited
	}
	fixed, perToken := in.Times.line.estimate()
	if perToken <= 0 {
		return tileRows
	}
	most := limit.Seconds()
	if !in.off(DecodeStretch) {
		most = max(most, stretch*(fixed+perToken*float64(len(in.Requests))))
	}
	room := max(1, int(min((most-fixed)/perToken-float64(taken), unlimited)))
	if in.off(TileRounding) {
		return room
	}
	total := (taken + room + tileRows/2) / tileRows * tileRows
	if total-taken < tileRows/2 { // a prompt gets something, however short the step
		total += tileRows
	}
	return total - taken
}

// promptBudget is how many tokens of prompts, in their order, a step may take
// beside those that it has already. Where the first of them is short, begins
// alone, and they do not all fit, the step ends soon after it.
func (in *Input) promptBudget(taken int, prompts []int, barrier bool) int {
	if p := in.pressure(); !math.IsInf(p, 1) {
		return in.budgetBeside(taken, p, barrier)
	}
	limit := in.Objective.StepTime
	if !in.off(IdleStretch) {
		limit *= idleStretch
	}
	if barrier && !in.off(BarrierStretch) {
		limit *= barrierFactor
	}
	room := in.room(limit, taken)
	all := 0
	for _, i := range prompts {
		all += in.Requests[i].Pending()
	}
	if !barrier && all > room && in.Requests[prompts[0]].Pending()*idleStretch < room && !in.off(ShortAlone) {
		room /= idleStretch
	}
	return room
}

// budgetBeside is promptBudget where requests generate.
func (in *Input) budgetBeside(taken int, pressure float64, barrier bool) int {
	longer := min(max(pressure, 1), idleStretch*barrierFactor)
	if in.off(CrowdStretch) {
		longer = 1
	}
	if barrier { // few large steps hold those that generate up no longer than many
		longer = idleStretch * barrierFactor
	}
	return in.room(time.Duration(longer*float64(in.Objective.StepTime)), taken)
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

// draftRoom is how many drafted tokens a step may take. Where its time is
// limited they take nothing while prompts wait, whose tokens all count; else
// prompts keep half.
func (in *Input) draftRoom(left *Limits, prompts bool) int {
	switch {
	case prompts && in.Objective.StepTime > 0 && !in.off(DraftsAfterPrompts):
		return 0
	case prompts:
		return left.Tokens / 2
	}
	return in.room(in.Objective.StepTime, in.Limits.Tokens-left.Tokens)
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
