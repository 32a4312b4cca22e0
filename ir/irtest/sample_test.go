package irtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSample checks that a seed draws the same cases, in order and without duplicates, that
// other seeds draw others, and that IFLOWC_TEST_ALL returns all.
func TestSample(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	t.Setenv("IFLOWC_TEST_ALL", "")
	t.Setenv("IFLOWC_TEST_SEED", "5")
	if n := Rounds(2, 10); n != 2 {
		t.Errorf("%d rounds", n)
	}
	first := Sample(t, 4, all)
	if again := Sample(t, 4, all); !slices.Equal(first, again) || len(first) != 4 || !slices.IsSorted(first) || len(slices.Compact(slices.Clone(first))) != 4 {
		t.Errorf("%v, then %v", first, again)
	}
	if a, b := Sample(t, 1, []string{"a", "b", "c"}), Sample(t, 1, []string{"c", "b", "a"}); !slices.Equal(a, b) {
		t.Errorf("of the same names in another order %v, not %v", b, a)
	}
	other := false
	for _, seed := range []string{"6", "7", "8"} {
		t.Setenv("IFLOWC_TEST_SEED", seed)
		other = other || !slices.Equal(first, Sample(t, 4, all))
	}
	if !other {
		t.Error("every seed draws the same cases")
	}
	t.Setenv("IFLOWC_TEST_ALL", "1")
	if n := Rounds(2, 10); n != 10 {
		t.Errorf("all rounds are asked for, %d run", n)
	}
	if got := Sample(t, 4, all); len(got) != len(all) {
		t.Errorf("all cases are asked for, %d drawn", len(got))
	}
}

// A refusal keeps the message of Fatalf and ends the call.
type refusal struct {
	testing.TB
	said string
}

func (r *refusal) Helper() {}

func (r *refusal) Fatalf(format string, args ...any) {
	r.said = fmt.Sprintf(format, args...)
	panic(r)
}

func TestSeed(t *testing.T) {
	for text, want := range map[string]uint64{"": 1, "9": 9} {
		t.Setenv("IFLOWC_TEST_SEED", text)
		if seed := Seed(t); seed != want {
			t.Errorf("%q: seed %d, want %d", text, seed, want)
		}
	}
	t.Setenv("IFLOWC_TEST_SEED", "x")
	r := &refusal{TB: t}
	defer func() {
		if recover() != r || !strings.Contains(r.said, "IFLOWC_TEST_SEED=x: expected an integer") {
			t.Errorf("a wrong seed gives %q", r.said)
		}
	}()
	Seed(r)
}
