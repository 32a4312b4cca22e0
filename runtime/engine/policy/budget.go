package policy

import (
	"math"
	"sort"
)

// unlimited is more tokens than any step computes.
const unlimited = 1 << 30

// promptBudget returns how many prompt tokens fit into a step that has already taken
// tokens, so that it lasts about as long as its target.
func (in *Input) promptBudget(taken int) int {
	limit := in.Objective.StepTime.Seconds()
	if limit <= 0 {
		return unlimited
	}
	fixed, perToken := in.Times.line.estimate()
	if perToken <= 0 {
		return tileRows
	}
	ratio := in.waitingPerDecoding()
	if math.IsInf(ratio, 1) {
		if !in.off(IdleStretch) {
			limit *= idleStretch
		}
	} else {
		if !in.off(DecodeStretch) {
			limit = max(limit, stretch*(fixed+perToken*float64(len(in.Requests))))
		}
		if ratio >= fewDecoding && !in.off(BurstStretch) {
			limit = max(limit, min(ratio*limit, burstStretch*in.Objective.StepTime.Seconds()))
		}
	}
	room := max(1, int(min((limit-fixed)/perToken-float64(taken), unlimited)))
	if in.off(TileRounding) {
		return room
	}
	total := (taken + room + tileRows/2) / tileRows * tileRows
	if total-taken < tileRows/2 { // prompts make progress in every step, however short it is
		total += tileRows
	}
	return total - taken
}

// draftLimit returns the maximum drafted tokens of a step, besides the tokens of decoding
// requests. It returns 0 if that is less than one for each. Drafts for a few requests
// would end these earlier, and the next prompts of their clients would then be prefilled
// while the others decode.
func (in *Input) draftLimit(decoding int) int {
	if in.Objective.StepTime <= 0 || in.off(DraftLimit) {
		return unlimited
	}
	most := stretch * in.Times.Step(1)
	n := sort.Search(maxTimed-min(decoding, maxTimed), func(n int) bool { return in.Times.Step(decoding+n+1) > most })
	if n < decoding {
		return 0
	}
	return n
}

// drafts divides at most the given number of drafted tokens evenly among the requests
// in a step. Drafts use only tokens, rows, pages and cells that no waiting request needs.
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
		p.Draft = left.cellRoom(out, done, max(0, min(n, p.Pages*left.PageRows-done)))
		tokens -= p.Draft
		left.Tokens -= p.Draft
		left.Rows -= p.Draft
	}
}

// cellRoom returns how many of n drafted tokens have room in cells of fixed-size states,
// after done other tokens, and takes the cells.
func (l *Limits) cellRoom(out *Batch, done, n int) int {
	if l.CellRows == 0 {
		return n
	}
	held := (done + l.CellRows - 1) / l.CellRows
	need := (done+n+l.CellRows-1)/l.CellRows - held
	if out.Short >= 0 {
		need = 0
	}
	need = min(need, l.Cells)
	l.Cells -= need
	return min(n, (held+need)*l.CellRows-done)
}
