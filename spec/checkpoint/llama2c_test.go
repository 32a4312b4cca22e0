package checkpoint

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// llama2cHead is a header with dim 8, hidden 12, 2 layers, 2 heads, 1 KV head,
// vocabulary 4 and sequence 3.
var llama2cHead = [7]int32{8, 12, 2, 2, 1, 4, 3}

func llama2cBytes(head [7]int32) []byte {
	var out []byte
	for _, v := range head {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out
}

// llama2cElements is the number of elements of a layer's matrices: wq, wk, wv, wo,
// w1, w2, w3.
const llama2cElements = 64 + 32 + 32 + 64 + 3*96

func countedFloats(from, n int) []byte { return checkpointtest.Ramp("", float32(from), n).Raw }

func TestLlama2cVersion0(t *testing.T) {
	t.Parallel()
	body := 32 + 2*(8+8+llama2cElements) + 8 + 3*4
	s := openBytes(t, "model.bin", append(llama2cBytes(llama2cHead), countedFloats(0, body)...))
	if s.Format() != "llama2.c" || s.Meta()["dim"] != 8 || s.Meta()["vocab_size"] != 4 || s.Meta()["shared_classifier"] != true {
		t.Errorf("%s %v", s.Format(), s.Meta())
	}
	for name, first := range map[string]float32{
		"tok_embeddings.weight": 0, "layers.0.attention_norm.weight": 32, "layers.1.attention_norm.weight": 40,
		"layers.0.attention.wq.weight": 48, "layers.1.attention.wq.weight": 112, "layers.0.attention.wk.weight": 176,
		"layers.0.ffn_norm.weight": 48 + 2*192, "layers.0.feed_forward.w1.weight": 64 + 2*192, "norm.weight": 64 + 2*(192+288),
	} {
		if got := floatsOf(t, s, name); got[0] != first {
			t.Errorf("%s begins with %v, want %v", name, got[0], first)
		}
	}
	if i, _ := s.Lookup("layers.0.feed_forward.w2.weight"); len(i.Shape) != 2 || i.Shape[0] != 8 || i.Shape[1] != 12 {
		t.Errorf("w2 has shape %v", i.Shape)
	}
	if _, ok := s.Lookup("output.weight"); ok {
		t.Error("a shared classifier was read")
	}
	own := llama2cHead
	own[5] = -4
	s = openBytes(t, "model.bin", append(llama2cBytes(own), countedFloats(0, body+32)...))
	if got := floatsOf(t, s, "output.weight"); got[0] != float32(body) {
		t.Errorf("the classifier begins with %v", got[0])
	}
}

func TestLlama2cVersion2(t *testing.T) {
	t.Parallel()
	head := binary.LittleEndian.AppendUint32(nil, llama2cMagic)
	head = append(binary.LittleEndian.AppendUint32(head, 2), llama2cBytes(llama2cHead)...)
	head = binary.LittleEndian.AppendUint32(append(head, 1), 4)
	head = append(head, make([]byte, llama2cHeader-len(head))...)
	data := countedFloats(0, 2*8+2*8+8)
	for _, n := range []int{32, 64, 64, 32, 32, 32, 32, 64, 64, 96, 96, 96, 96, 96, 96} {
		for i := range n {
			data = append(data, byte(int8(i%7-3)))
		}
		for i := range n / 4 {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i+1)/3))
		}
	}
	s := openBytes(t, "model.bin", append(head, data...))
	x := floatsOf(t, s, "layers.1.attention.wk.weight")
	for i, got := range x {
		if want := float32(i%7-3) * (float32(i/4+1) / 3); got != want {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
	}
	if len(x) != 32 || s.Meta()["group_size"] != 4 || floatsOf(t, s, "norm.weight")[0] != 32 {
		t.Error("layout", len(x), s.Meta())
	}
}

func TestBadLlama2c(t *testing.T) {
	t.Parallel()
	body := countedFloats(0, 32+2*(8+8+llama2cElements)+8+3*4)
	for i, change := range []struct {
		at   int
		to   int32
		want string
	}{
		{0, 0, "dim 0"}, {0, -8, "dim -8"}, {3, 0, "heads 0"}, {3, 3, "are not divisible"}, {4, 3, "are not divisible"},
		{2, math.MaxInt32, "layers 2147483647"}, {5, math.MinInt32, "vocabulary 2147483648"}, {1, 1 << 30, "truncated"}, {5, 3, "after the last tensor"},
	} {
		head := llama2cHead
		head[change.at] = change.to
		_, err := Open(writeFile(t, t.TempDir(), "m.bin", append(llama2cBytes(head), body...)))
		if err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("case %d: error %v, want …%s…", i, err, change.want)
		}
	}
}

func FuzzLlama2c(f *testing.F) {
	f.Add(append(llama2cBytes(llama2cHead), countedFloats(0, 32+2*(16+llama2cElements)+20)...))
	head := binary.LittleEndian.AppendUint32(nil, llama2cMagic)
	head = append(binary.LittleEndian.AppendUint32(head, 2), llama2cBytes([7]int32{2, 1, 1, 1, 1, 1, 1})...)
	head = binary.LittleEndian.AppendUint32(append(head, 1), 1)
	f.Add(append(head, make([]byte, 600)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzReader(t, "x.bin", data, readLlama2c)
	})
}
