package access

import (
	"math"
	"time"
)

// A bucket is a token bucket with a limit per minute, which is also its capacity. Its
// level may fall below zero, because the cost of an answer is known only when it ends.
type bucket struct {
	perMinute float64 // 0: no limit
	level     float64
	at        time.Time // time of the last refill
}

// set changes the limit and keeps what was used.
func (b *bucket) set(perMinute int, now time.Time) {
	b.fill(now)
	b.level += float64(perMinute) - b.perMinute // without a limit, the level is 0
	b.perMinute, b.at = float64(perMinute), now
}

func (b *bucket) fill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.level = min(b.perMinute, b.level+b.perMinute*passed.Minutes())
		b.at = now
	}
}

// wait returns the time until the level is at least need.
func (b *bucket) wait(need float64, now time.Time) time.Duration {
	b.fill(now)
	if b.perMinute == 0 || b.level >= need {
		return 0
	}
	return time.Duration(math.Ceil((need - b.level) / b.perMinute * float64(time.Minute)))
}

// take lowers the level, possibly below zero.
func (b *bucket) take(n float64, now time.Time) {
	if b.perMinute > 0 {
		b.fill(now)
		b.level -= n
	}
}

// A Quota is the state of a limit per minute.
type Quota struct {
	Limit, Remaining int           // Limit 0: no limit
	Reset            time.Duration // time until the bucket is full
}

func (b *bucket) quota(now time.Time) Quota {
	reset := b.wait(b.perMinute, now)
	return Quota{int(b.perMinute), int(max(0, b.level)), reset}
}
