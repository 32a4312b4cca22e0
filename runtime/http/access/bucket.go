package access

import (
	"math"
	"time"
)

// A bucket allows so much per minute: it holds at most a minute's worth, and
// fills evenly. Its level may fall below zero, because what an answer takes is
// known only when it ends.
type bucket struct {
	perMinute float64 // 0: no limit
	level     float64
	at        time.Time // of level
}

// set changes the limit. What was used up stays used up.
func (b *bucket) set(perMinute int, now time.Time) {
	b.fill(now)
	b.level += float64(perMinute) - b.perMinute // no limit has the level 0
	b.perMinute, b.at = float64(perMinute), now
}

func (b *bucket) fill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.level = min(b.perMinute, b.level+b.perMinute*passed.Minutes())
		b.at = now
	}
}

// wait is how long until the level is at least need.
func (b *bucket) wait(need float64, now time.Time) time.Duration {
	b.fill(now)
	if b.perMinute == 0 || b.level >= need {
		return 0
	}
	return time.Duration(math.Ceil((need - b.level) / b.perMinute * float64(time.Minute)))
}

// take lowers the level, also below zero.
func (b *bucket) take(n float64, now time.Time) {
	if b.perMinute > 0 {
		b.fill(now)
		b.level -= n
	}
}

// A Quota is what is left of a limit per minute.
type Quota struct {
	Limit, Remaining int           // Limit 0: none
	Reset            time.Duration // until all of it is there again
}

func (b *bucket) quota(now time.Time) Quota {
	reset := b.wait(b.perMinute, now)
	return Quota{int(b.perMinute), int(max(0, b.level)), reset}
}
