//go:build unix

package scheduler_test

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// never is a mask that is always late.
type never struct{}

func (never) Mask() ([]uint64, error) { return slices.Repeat([]uint64{math.MaxUint64}, 64), nil }
func (never) Accept(int32) error      { return nil }
func (never) Done() bool              { return false }
func (never) Ready(func()) bool       { return false }

// A record keeps the lines of a log.
type record struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSpace(r.text.String())
}

// TestLongWaits checks that the log names each client that waits over 10 s, once, with
// what it waits for.
func TestLongWaits(t *testing.T) {
	t.Parallel()
	devicetest.Open(t, devicetest.Manifest(), salt) // compiles outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		var log record
		plain := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 2, Pages: 6, Context: 300}, scheduler.Options{
			QueueTime: time.Hour, MinRun: time.Hour, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: plain})),
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ask := func(id, client string, priority, n, tokens int) {
			_, err := s.Generate(ctx, scheduler.Generation{
				Job:    scheduler.Job{Client: client, Priority: priority, Request: &scheduler.Request{ID: id, Arrived: time.Now()}},
				Prompt: slices.Repeat([]int32{9}, tokens), Samplers: samplers(t, n, decode.Settings{Mask: never{}}, tokens), Max: 5, Logprobs: -1,
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		ask("masked", "a", 0, 1, 2)
		time.Sleep(time.Second)
		ask("share", "a", 9, 2, 2)
		ask("slots", "c", 0, 2, 2)
		ask("pages", "b", -1, 1, 299) // needs all 6 pages, and the first request has one
		ask("turn", "c", 0, 1, 2)
		time.Sleep(8900 * time.Millisecond)
		if text := log.String(); text != "" {
			t.Errorf("before 10 s: %s", text)
		}
		time.Sleep(30 * time.Second)
		want := []string{
			`request=masked caller=a priority=0 seconds=10 for="a token mask: its grammar is being computed" prompt_tokens=2 computed=2`,
			`request=pages caller=b priority=-1 seconds=10 waiting=4 for="KV cache: pages are missing (--pages, --memory)" sequences=1 running=1 parallel=2 caller_running=0 pages=6 free_pages=4`,
			`request=share caller=a priority=9 seconds=10 waiting=4 for="its client's share: its other requests use it" sequences=2 running=1 parallel=2 caller_running=1 pages=3 free_pages=4`,
			`request=slots caller=c priority=0 seconds=10 waiting=4 for="sequences: all run (--parallel)" sequences=2 running=1 parallel=2 caller_running=0 pages=3 free_pages=4`,
			`request=turn caller=c priority=0 seconds=10 waiting=4 for="its turn: other requests come first" sequences=1 running=1 parallel=2 caller_running=0 pages=2 free_pages=4`,
		}
		slices.Sort(want)
		got := strings.Split(log.String(), "\n")
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], `level=WARN msg="a client waits long" `)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
