package pack

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/calibration"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// wantSet opens a file with a matrix "want" of 128 columns.
func wantSet(t *testing.T) *checkpoint.Set {
	t.Helper()
	set, err := checkpoint.Open(filepath.Join("..", "..", "spec", "checkpoint", "testdata", "quantized", "gptq4_desc"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// calibrated writes a calibration file and opens it.
func calibrated(t *testing.T, f calibration.File) *Calibration {
	t.Helper()
	path := filepath.Join(t.TempDir(), "importance")
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	c, err := ReadCalibration(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestImportance: an importance matrix comes back as it was written, changes
// what is encoded, and leaves types that hold the stored values alone.
func TestImportance(t *testing.T) {
	t.Parallel()
	src := Source{Set: wantSet(t)}
	want := make([]float32, 128)
	for i := range want {
		want[i] = float32(i%32) * float32(i%32)
	}
	file := calibration.File{Importance: map[string][]float32{"want": want}, Meta: map[string]string{"tokens": "1"}}
	c := calibrated(t, file)
	if !slices.Equal(c.Importance["want"], want) || len(c.Importance) != 1 {
		t.Fatalf("%v came back", c.Importance)
	}
	file.Meta = nil
	if again := calibrated(t, file); again.Digest() != c.Digest() || c.Digest() == "" {
		t.Errorf("digests %q and %q of the same numbers", again.Digest(), c.Digest())
	}
	exact, err := src.Set.Float32("want")
	if err != nil {
		t.Fatal(err)
	}
	loss := func() float64 {
		d, err := Eval(src, quantizeTo(tensor.Q4B64, tensor.Source("want")), nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i, x := range d.Float32() {
			sum += float64(want[i%128]) * float64(x-exact[i]) * float64(x-exact[i])
		}
		return sum
	}
	even := loss()
	src.Calibration = c
	if weighted := loss(); weighted >= even {
		t.Errorf("weighted error %v, %v without importance", weighted, even)
	}
}

func TestCalibrationRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "importance")
	for _, bad := range []string{`{"l":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}` + "\x00\x00\x80\xbf", `{}`} {
		n := strings.LastIndexByte(bad, '}') + 1
		if err := os.WriteFile(path, append([]byte{byte(n), 0, 0, 0, 0, 0, 0, 0}, bad...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCalibration(path); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if err := os.WriteFile(path, []byte("no safetensors"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCalibration(path); err == nil {
		t.Error("not a file of tensors: accepted")
	}
}

// TestHessians: transforms over a calibrated set encode as tensor.EncodeFeedback
// does; types that hold the stored values stay as they were.
func TestHessians(t *testing.T) {
	t.Parallel()
	const cols, width = 128, 64
	src := Source{Set: wantSet(t)}
	sums := make([]float32, cols/width*calibration.SquareLen(width))
	for i := range sums {
		sums[i] = 0.3
	}
	for i := range cols {
		sums[i/width*calibration.SquareLen(width)+calibration.Place(width, i%width, i%width)] = 1
	}
	bytes := func(dt tensor.DType) []byte {
		d, err := Eval(src, quantizeTo(dt, tensor.Source("want")), nil)
		if err != nil {
			t.Fatal(err)
		}
		return d.Bytes()
	}
	half := bytes(tensor.F16)
	plain := calibration.File{Importance: map[string][]float32{"want": make([]float32, cols)}}
	whole := plain
	whole.Hessians = []calibration.Hessian{{Matrices: []string{"other", "want"}, Width: width, Sums: sums}}
	src.Calibration = calibrated(t, whole)
	if len(src.Calibration.Importance) != 1 || src.Calibration.Digest() == calibrated(t, plain).Digest() {
		t.Fatalf("%d matrices beside the Hessian, digest %q", len(src.Calibration.Importance), src.Calibration.Digest())
	}
	if !slices.Equal(bytes(tensor.F16), half) {
		t.Error("f16: a Hessian changed what is stored")
	}
	f, err := tensor.NewFeedback(sums, width, cols)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := src.Set.Float32("want")
	if err != nil {
		t.Fatal(err)
	}
	for _, dt := range []tensor.DType{tensor.Q8B32T2, tensor.Q4B64, tensor.Q3HB64} {
		got, size := bytes(dt), dt.RowBytes(cols)
		for r := 0; r*cols < len(rows); r++ {
			want := make([]byte, size)
			if err := tensor.EncodeFeedback(want, dt, slices.Clone(rows[r*cols:(r+1)*cols]), f); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[r*size:(r+1)*size], want) {
				t.Fatalf("%s: row %d is not what feedback gives", dt, r)
			}
		}
	}
}

// TestScores: counts come back from the file, and their range leaves one row in
// ten thousand out on either side.
func TestScores(t *testing.T) {
	t.Parallel()
	counted := make([]float32, 2*manifest.ScoreBins)
	counted[128-7], counted[128-2], counted[manifest.ScoreBins+128+9], counted[manifest.ScoreBins+128+40] = 1, 9000, 10000, 1
	c := calibrated(t, calibration.File{Importance: map[string][]float32{"w": {1, 2}}, Scores: counted})
	if lo, hi, ok := c.ScoreRange(); lo != -2 || hi != 10 || !ok {
		t.Errorf("scores from %v to %v (%v), expected -2 to 10", lo, hi, ok)
	}
	if len(c.Importance) != 1 {
		t.Errorf("%d matrices, expected one", len(c.Importance))
	}
	c.Scores[manifest.ScoreBins-1] = 100
	if _, _, ok := c.ScoreRange(); ok {
		t.Error("a range that is open has no end")
	}
	if _, _, ok := (&Calibration{}).ScoreRange(); ok {
		t.Error("a range of nothing")
	}
}

// TestNoCalibration: none knows nothing.
func TestNoCalibration(t *testing.T) {
	t.Parallel()
	var c *Calibration
	if _, _, known := c.ScoreRange(); known || c.Digest() != "" {
		t.Error("a digest or a range of nothing")
	}
}

// TestHostileCalibration: counts that overflow or are none, and other programs' forms.
func TestHostileCalibration(t *testing.T) {
	counts := func(v float32) []byte {
		x := make([]byte, 4*manifest.ScoreBins)
		binary.LittleEndian.PutUint32(x, math.Float32bits(v))
		return checkpointtest.Safetensors(checkpointtest.Ramp("a.weight", 1, 8), checkpointtest.New(calibration.ScoresName, tensor.F32, []int{manifest.ScoreBins}, x))
	}
	old := slices.Concat([]byte{2, 0, 0, 0, 19, 0, 0, 0}, []byte("blk.0.attn_q.weight"), make([]byte, 100))
	for want, data := range map[string][]byte{
		"number 0 is -1;":                        counts(-1),
		"number 0 is NaN;":                       counts(float32(math.NaN())),
		"number 0 is +Inf;":                      counts(float32(math.Inf(1))),
		"old form; convert it: llama-imatrix":    old,
		"no tensors; expected":                   checkpointtest.GGUF(nil),
		`tensor "a.counts" among 1 tensors`:      checkpointtest.GGUF(nil, checkpointtest.Ramp("a.in_sum2", 0, 1, 4)),
		"an importance matrix holds floats":      checkpointtest.Safetensors(checkpointtest.New("a.weight", tensor.I8, []int{1}, []byte{1})),
		"number 0 is -4; expected a finite, non": checkpointtest.Safetensors(checkpointtest.Ramp("a.weight", -4, 8)),
	} {
		path := hostiletest.File(t, "imatrix", data)
		hostiletest.Refused(t, len(data), func() error { return useCalibration(t, path) }, path, want)
	}
}

// useCalibration reads a file as quantization does.
func useCalibration(t *testing.T, path string) error {
	c, err := ReadCalibration(path)
	if err != nil {
		return err
	}
	if d := c.Digest(); len(d) != 64 {
		t.Errorf("digest %q", d)
	}
	if lo, hi, ok := c.ScoreRange(); ok && !(lo < hi && lo > -1000 && hi < 1000) {
		t.Errorf("scores from %v to %v", lo, hi)
	}
	for name, x := range c.Importance {
		if i := slices.IndexFunc(x, func(v float32) bool { return !(v >= 0) }); i >= 0 {
			t.Errorf("%q: importance %v", name, x[i])
		}
	}
	if c.hessians != nil {
		for name := range c.hessians.places {
			for _, cols := range []int{64, 128} {
				_, err = c.hessians.feedback(name, cols)
			}
		}
	}
	return err
}

// FuzzCalibration reads any file as a calibration or an importance matrix of llama.cpp.
func FuzzCalibration(f *testing.F) {
	f.Add(checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair("general.type", 8, checkpointtest.GGUFText("imatrix"))},
		checkpointtest.Ramp("blk.0.attn_q.weight.in_sum2", 0, 1, 8), checkpointtest.Ramp("blk.0.attn_q.weight.counts", 5, 1, 1),
		checkpointtest.Ramp("blk.0.ffn_up_exps.weight.in_sum2", 0, 2, 8), checkpointtest.Ramp("blk.0.ffn_up_exps.weight.counts", 5, 2, 1)))
	path := filepath.Join(f.TempDir(), "calibration")
	file := calibration.File{Importance: map[string][]float32{"a.weight": {1, 2, 3}}, Scores: make([]float32, manifest.ScoreBins)}
	for i := range file.Scores {
		file.Scores[i] = float32(i % 7)
	}
	square := calibration.Hessian{Matrices: []string{"a.weight", "b.weight"}, Width: 64, Sums: make([]float32, calibration.SquareLen(64))}
	for _, hessians := range [][]calibration.Hessian{nil, {square}} {
		file.Hessians = hessians
		if err := file.Write(path); err != nil {
			f.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := hostiletest.File(t, "x", data)
		_ = hostiletest.Read(t, len(data), func() error { return useCalibration(t, path) })
	})
}
