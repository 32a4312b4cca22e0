package tensor

import "testing"

func TestTensorIndexing(t *testing.T) {
	t.Parallel()
	x := New(F32, 2, 3)
	x.Set(7, 1, 2)
	if x.At(1, 2) != 7 || x.F[5] != 7 || x.Len() != 6 {
		t.Fatalf("row-major order: %v", x.F)
	}
	y := x.Clone()
	y.Set(1, 0, 0)
	if x.At(0, 0) != 0 || y.At(1, 2) != 7 {
		t.Fatal("a clone shares values")
	}
	if New(F32).Len() != 1 {
		t.Fatal("a scalar has one element")
	}
}
