//go:build unix

package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/hostmem"
)

// TestServeMemory: a service divides what --memory gives it, or says what to change.
func TestServeMemory(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	mb := func(args ...string) (all, requests int64) {
		t.Helper()
		_, said := b.serve(t, args...)
		_, text, _ := strings.Cut(said, "server memory: at most ")
		if _, err := fmt.Sscanf(text, "%d MB in all, %d MB of it for requests", &all, &requests); err != nil {
			t.Fatalf("%v in %q", err, said)
		}
		return all, requests
	}
	_, usual := mb("--memory", fmt.Sprint(hostmem.Resident()+4<<30))
	limit := hostmem.Resident() + 300<<20
	if all, requests := mb("--memory", fmt.Sprint(limit)); all > limit/1e6+1 || requests >= usual {
		t.Errorf("of %d MB: at most %d MB, %d MB for requests, which is usually %d", limit/1e6, all, requests, usual)
	}
	if _, requests := mb("--memory", fmt.Sprint(limit), "--request-memory", "100M"); requests != 100 {
		t.Errorf("--request-memory 100M: %d MB", requests)
	}
	for want, args := range map[string][]string{
		"raise --memory or the container's limit": {"--memory", "1M"},
		"write it as 500M, 20G, 1.5T or 512Mi":    {"--memory", "much"},
		"--request-memory 1000000: expected":      {"--request-memory", "1M"},
		"8 times --max-body":                      {"--request-memory", "64M", "--max-body", "16M"},
		"--max-body 0: expected":                  {"--max-body", "0"},
	} {
		if code, _, stderr := b.run(t.Context(), append([]string{"serve", "--port", "0"}, args...)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}
