package speculate

// backoffFirst is the first rest of a Backoff, in steps; the longest is sixteen
// times as long. With 32, drafts that are never right are in one step of 20
// (TestDraftGain), and those that come to pay are found within 512.
const (
	backoffFirst = 32
	backoffMost  = 16 * backoffFirst
)

// A Backoff keeps something that does not pay still for ever longer times
// (exponential back-off). The zero value does not rest.
type Backoff struct {
	next   int // steps of the next rest; 0: of the first
	left   int // steps left of this one
	failed int // steps in a row that did not pay
}

// Resting says whether it rests.
func (b *Backoff) Active() bool { return b.left > 0 }

// Step counts a step of a rest.
func (b *Backoff) Step() { b.left = max(0, b.left-1) }

// Wake ends a rest.
func (b *Backoff) Stop() { b.left = 0 }

// Pause rests for so many steps, and no longer the next time.
func (b *Backoff) Pause(steps int) { b.left = steps }

// Rest begins a rest, twice as long as the one before.
func (b *Backoff) Start() {
	b.left = max(b.next, backoffFirst)
	b.failed, b.next = 0, min(2*b.left, backoffMost)
}

// Failed counts a step in which nothing paid; after a few in a row, each with
// another tree, it rests, and says so.
func (b *Backoff) Failed() bool {
	if b.failed++; b.failed < medusaRetree {
		return false
	}
	b.Start()
	return true
}

// Paid counts a step that paid.
func (b *Backoff) Reset() { b.failed, b.next = 0, 0 }
