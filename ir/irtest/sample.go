package irtest

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// All reports whether tests run all of their cases: where IFLOWC_TEST_ALL is set,
// as script/check-all does.
func All() bool { return os.Getenv("IFLOWC_TEST_ALL") != "" }

// Seed is what tests draw their cases by: IFLOWC_TEST_SEED, else 1.
func Seed(t testing.TB) uint64 {
	text := os.Getenv("IFLOWC_TEST_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("IFLOWC_TEST_SEED=%s: expected a whole number", text)
	}
	return seed
}

// Sample returns n of a test's cases, in their order, drawn by the seed and the
// test's name; all of them where All says so. It logs the seed.
func Sample[T any](t testing.TB, n int, cases []T) []T {
	t.Helper()
	if All() || n >= len(cases) {
		return cases
	}
	seed := Seed(t)
	t.Logf("%d of %d cases, IFLOWC_TEST_SEED=%d", n, len(cases), seed)
	name := uint64(0)
	for _, b := range []byte(t.Name()) {
		name = name*31 + uint64(b)
	}
	which := rand.New(rand.NewPCG(seed, name)).Perm(len(cases))[:n]
	slices.Sort(which)
	out := make([]T, n)
	for i, k := range which {
		out[i] = cases[k]
	}
	return out
}
