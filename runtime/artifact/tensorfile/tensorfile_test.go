package tensorfile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// The readers' other tests are those of package checkpoint.

// TestHeads reads headers without the data behind them.
func TestHeads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		read func(head []byte, size int64) (*File, error)
	}{
		"safetensors": {checkpointtest.Safetensors(checkpointtest.Ramp("w", 0, 64, 3)), Safetensors},
		"gguf":        {checkpointtest.GGUF(nil, checkpointtest.Ramp("w", 0, 64, 3)), GGUF},
	} {
		size := int64(len(c.data))
		f, err := c.read(c.data[:256], size)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w := f.Tensors[0]; w.Name != "w" || !slices.Equal(w.Shape, []int{64, 3}) || w.Bytes != 768 || w.Offset+w.Bytes != size {
			t.Errorf("%s: %+v of a file of %d bytes", name, w, size)
		}
		if _, err := c.read(c.data[:20], size); !errors.Is(err, ErrTruncated) {
			t.Errorf("%s: part of a header: %v", name, err)
		}
	}
}

// TestLongNames checks that errors do not repeat long texts of a file.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 1<<20)
	text := checkpointtest.GGUFText(long)
	for want, read := range map[string]func() (*File, error){
		"a tensor's name has 1048576 bytes": func() (*File, error) {
			b := checkpointtest.Safetensors(checkpointtest.Ramp(long, 0, 1))
			return Safetensors(b, int64(len(b)))
		},
		"a tensor's name has": func() (*File, error) {
			b := checkpointtest.GGUF(nil, checkpointtest.Ramp(long, 0, 1))
			return GGUF(b, int64(len(b)))
		},
		"unknown value type 99": func() (*File, error) {
			b := checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair(long, 99, nil)}, checkpointtest.Ramp("w", 0, 9))
			return GGUF(b, int64(len(b)))
		},
		"general.alignment is nnn": func() (*File, error) {
			b := checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair("general.alignment", 8, text)})
			return GGUF(b, int64(len(b)))
		},
	} {
		if _, err := read(); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("error %.500v, want …%s…", err, want)
		}
	}
}
