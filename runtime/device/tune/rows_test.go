package tune

import (
	"slices"
	"testing"
)

func TestParseRows(t *testing.T) {
	t.Parallel()
	got, err := ParseRows("8, 1-3,2")
	if !slices.Equal(got, []int{1, 2, 3, 8}) || err != nil {
		t.Error(got, err)
	}
	if got, err := ParseRows(""); got != nil || err != nil {
		t.Error(got, err)
	}
	for _, bad := range []string{"0", "3-2", "1-", "x", "1,,2", "5000"} {
		if got, err := ParseRows(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}
