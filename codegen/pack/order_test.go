package pack_test

import (
	"flag"
	"math"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

var orderModel = flag.String("order-model", filepath.Join("..", "..", "models", "demo"), "model whose weights TestErrorOrder rounds; they must never have been quantized")

// TestErrorOrder rounds a model's matrices to every block type: the more bits,
// the smaller the error, in the order of the Inferflow report's Table 3. It logs
// the table of docs/benchmarks/quantization.md.
func TestErrorOrder(t *testing.T) {
	t.Parallel()
	set, err := checkpoint.Open(*orderModel)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	last := 0.0
	for _, dt := range []tensor.DType{
		tensor.Q8B32, tensor.Q8B64, tensor.Q8B32T2, tensor.Q6TB32, tensor.Q6B64, tensor.Q5TB32, tensor.Q5B32, tensor.Q5B64, tensor.Q4TB32, tensor.Q4B32, tensor.Q4B64,
		tensor.Q3HB64, tensor.Q3TB32, tensor.Q3B32, tensor.Q2TB32, tensor.Q2B32,
	} {
		loss := relativeError(t, set, dt)
		t.Logf("%-9s %5.2f bits  %7.3f %%", dt, 8*float64(dt.BlockBytes())/float64(dt.Block()), 100*loss)
		if loss <= last {
			t.Errorf("%s loses %v of the weights, the type before it %v", dt, loss, last)
		}
		last = loss
	}
}

// relativeError is the root of the squared error of all matrices in a type over
// the sum of their squares.
func relativeError(t *testing.T, set *checkpoint.Set, dt tensor.DType) float64 {
	t.Helper()
	lost, all := 0.0, 0.0
	for _, i := range set.Tensors() {
		if len(i.Shape) != 2 || !i.DType.IsFloat() || i.Shape[1]%64 != 0 {
			continue
		}
		x, err := set.Float32(i.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !irtest.All() {
			x = someRows(x, i.Shape[1])
		}
		stored, back := make([]byte, dt.RowBytes(len(x))), make([]float32, len(x))
		if err := tensor.Encode(stored, dt, x); err != nil {
			t.Fatal(err)
		}
		if err := tensor.Decode(back, dt, stored); err != nil {
			t.Fatal(err)
		}
		for k, v := range x {
			d := float64(v - back[k])
			lost, all = lost+d*d, all+float64(v)*float64(v)
		}
	}
	if all == 0 {
		t.Fatal("no matrix with whole blocks of 64 columns")
	}
	return math.Sqrt(lost / all)
}

// someRows returns every fourth row: rows are rounded one by one.
func someRows(x []float32, columns int) []float32 {
	var out []float32
	for at := 0; at < len(x); at += 4 * columns {
		out = append(out, x[at:at+columns]...)
	}
	return out
}
