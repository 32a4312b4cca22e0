//go:build unix

package scheduler

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"
)

// forever is a step duration with a flush limit beyond the test's timeout.
const forever = time.Duration(math.MaxInt64)

// settled waits until a mailbox's client is idle.
func (m *mailbox[T]) settled() {
	for {
		m.mu.Lock()
		idle := m.idle
		m.mu.Unlock()
		if idle {
			return
		}
		runtime.Gosched()
	}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	const clients, steps = 5, 100
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	boxes := make([]*mailbox[int], clients)
	taken := make([]int, clients)
	for i := range boxes {
		boxes[i] = newMailbox[int]()
		wg.Go(func() {
			for {
				list, err := boxes[i].get(ctx)
				if err != nil {
					return
				}
				taken[i] += len(list)
			}
		})
		boxes[i].settled()
	}
	for step := range steps {
		d := newFlush(math.MaxInt)
		for _, b := range boxes {
			b.put(d, step)
		}
		d.wait(forever)
		for i, n := range taken { // no client reads any more
			if n != step+1 {
				t.Fatalf("step %d: client %d has taken %d events", step, i, n)
			}
		}
	}
}

// TestFlushSlow checks that a flush does not wait for a client that is still busy with
// earlier events, and waits at most its limit for one that stops reading.
func TestFlushSlow(t *testing.T) {
	t.Parallel()
	b := newMailbox[int]()
	d := newFlush(math.MaxInt)
	b.put(d, 1) // its client is not idle
	d.wait(forever)

	got := make(chan error)
	if list, err := b.get(t.Context()); len(list) != 1 || err != nil {
		t.Fatal(list, err)
	}
	go func() {
		_, err := b.get(t.Context())
		got <- err
	}()
	b.settled()
	d = newFlush(math.MaxInt)
	b.put(d, 2)
	if err := <-got; err != nil { // it received the event and does not become idle again
		t.Fatal(err)
	}
	d.wait(time.Nanosecond)

	d = newFlush(math.MaxInt)
	b.put(d, 3)
	d.wait(forever)
}

// TestFlushFree checks that there is no flush if the threads leave a core free.
func TestFlushFree(t *testing.T) {
	t.Parallel()
	d := newFlush(0)
	if d != nil {
		t.Fatal("with processors to spare a step waits for clients")
	}
	b := newMailbox[int]()
	b.put(d, 1)
	d.wait(forever)
}
