package irtest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// All reports whether tests run all of their cases: if IFLOWC_TEST_ALL is set, as in
// script/check-all.
func All() bool { return os.Getenv("IFLOWC_TEST_ALL") != "" }

// Rounds returns how often a test repeats what it draws by chance: some, or all if All
// reports true.
func Rounds(some, all int) int {
	if All() {
		return all
	}
	return some
}

// Seeds returns n of the numbers below all, for what is made from a number; see Sample.
func Seeds(t testing.TB, n, all int) []uint64 {
	t.Helper()
	seeds := make([]uint64, all)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	return Sample(t, n, seeds)
}

// Seed returns the seed of the tests' samples: IFLOWC_TEST_SEED, or 1. It logs the seed, which a
// test that fails then prints.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := seedOf(t)
	t.Logf("IFLOWC_TEST_SEED=%d", seed)
	return seed
}

func seedOf(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("IFLOWC_TEST_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("IFLOWC_TEST_SEED=%s: expected an integer", text)
	}
	return seed
}

// Sample returns n of a test's cases in their original order, or all if All reports true.
// It logs the seed. Strings are drawn as SampleBy draws them; other cases by their position
// and the test's name.
func Sample[T any](t testing.TB, n int, cases []T) []T {
	t.Helper()
	at := 0
	return SampleBy(t, n, cases, func(c T) string {
		if name, ok := any(c).(string); ok {
			return name
		}
		at++
		return fmt.Sprint(t.Name(), " ", at)
	})
}

// SampleBy is Sample by the cases' names. The seed orders names, whatever the test: tests
// that draw from the same models or weight types draw the same ones, so that what one test
// compiles serves the others.
func SampleBy[T any](t testing.TB, n int, cases []T, name func(T) string) []T {
	t.Helper()
	if All() || n >= len(cases) {
		return cases
	}
	t.Logf("%d of %d cases, IFLOWC_TEST_SEED=%d", n, len(cases), seedOf(t))
	which := Order(t, cases, name)[:n]
	slices.Sort(which)
	out := make([]T, n)
	for i, k := range which {
		out[i] = cases[k]
	}
	return out
}

// Order returns the positions of cases in the seed's order of their names.
func Order[T any](t testing.TB, cases []T, name func(T) string) []int {
	t.Helper()
	seed := seedOf(t)
	rank, order := make([]uint64, len(cases)), make([]int, len(cases))
	for i, c := range cases {
		h := fnv.New64a()
		h.Write([]byte(name(c)))
		rank[i], order[i] = rand.NewPCG(seed, h.Sum64()).Uint64(), i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rank[i], rank[j]) })
	return order
}
