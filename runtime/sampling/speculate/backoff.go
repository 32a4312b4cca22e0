package speculate

// backoffFirst is the length of a Backoff's first pause, in steps; backoffMax is that
// of the longest. With 32, drafts that are never accepted are in one step of 20
// (TestDraftGain), and drafts that begin to pay are noticed within 512 steps.
const (
	backoffFirst = 32
	backoffMax   = 16 * backoffFirst
)

// A Backoff pauses something that does not pay, with exponential back-off. The zero
// value is not pausing.
type Backoff struct {
	next   int // length of the next pause in steps; 0: backoffFirst
	left   int // remaining steps of the current pause
	failed int // consecutive failures
}

// Active reports whether a pause is in progress.
func (b *Backoff) Active() bool { return b.left > 0 }

// Step counts a step of a pause.
func (b *Backoff) Step() { b.left = max(0, b.left-1) }

// Stop ends a pause.
func (b *Backoff) Stop() { b.left = 0 }

// Pause starts a pause of the given number of steps, without lengthening the next one.
func (b *Backoff) Pause(steps int) { b.left = steps }

// Start starts a pause, twice as long as the one before.
func (b *Backoff) Start() {
	b.left = max(b.next, backoffFirst)
	b.failed, b.next = 0, min(2*b.left, backoffMax)
}

// Failed counts a step that did not pay. After medusaRetree consecutive ones, each with
// another tree, it starts a pause and returns true.
func (b *Backoff) Failed() bool {
	if b.failed++; b.failed < medusaRetree {
		return false
	}
	b.Start()
	return true
}

// Reset records a step that paid: the next pause is the shortest.
func (b *Backoff) Reset() { b.failed, b.next = 0, 0 }
