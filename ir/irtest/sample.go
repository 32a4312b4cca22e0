package irtest

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// All reports whether tests run all of their cases: if IFLOWC_TEST_ALL is set, as in
// script/check-all.
func All() bool { return os.Getenv("IFLOWC_TEST_ALL") != "" }

// Seed returns the seed of the tests' samples: IFLOWC_TEST_SEED, or 1.
func Seed(t testing.TB) uint64 {
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

// Sample returns n of a test's cases in their original order, drawn by the seed and the
// test's name, or all cases if All reports true. It logs the seed.
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
