package bytesize_test

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/bytesize"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "500M": 500e6, "20G": 20e9, "1.5T": 15e11, "20 GB": 20e9, "7": 7, "3kb": 3000, "512Mi": 512 << 20, "1.5 GiB": 3 << 29, "1.001K": 1001} {
		if got, err := bytesize.Parse(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "G", "1X", "NaN", "1e30", "Inf", "9999999T", "5i", "i"} {
		if got, err := bytesize.Parse(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}
