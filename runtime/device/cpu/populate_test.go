//go:build unix

package cpu

import (
	"bytes"
	"testing"

	"github.com/iflowc/iflowc/runtime/device"
)

// TestPopulate checks that populating preserves the contents at any alignment of pages.
func TestPopulate(t *testing.T) {
	t.Parallel()
	r, err := device.Map(40*1000*3, "pages")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	c := &model{kv: r, pages: 40, pageBytes: []int64{1000, 2000}}
	want := make([]byte, len(r.Bytes))
	for i := range want {
		if i%11000 < 100 {
			want[i] = byte(i%250) + 1
		}
	}
	copy(r.Bytes[:60000], want)
	for from := int32(0); from < 40; from += 7 {
		c.populate(from, min(from+7, 40))
	}
	copy(r.Bytes[60000:], want[60000:])
	if !bytes.Equal(r.Bytes, want) {
		t.Error("populated memory changed")
	}
	if n := c.populatedAtOnce(); n != 40 {
		t.Errorf("%d pages per call, expected all 40", n)
	}
}
