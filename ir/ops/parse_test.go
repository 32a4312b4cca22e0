package ops_test

import (
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

const small = `module small {
  weight @embed          : f16[32, 8] from "embed"
  weight @attn_norm[2]   : f32[8] from "l.{i}.norm"
  weight @wq[2]          : f32[8, 8] from "l.{i}.q"
  weight @wk[2]          : f32[4, 8] from "l.{i}.k"
  weight @wv[2]          : f32[4, 8] from "l.{i}.v"
  weight @wqkv[2]        : f32[16, 8] from concat(@wq, @wk, @wv)
  weight @pair[2]        : f32[8, 8] from permute_rows(rows("x.{i}", 0, 8), 2, "gguf_rope")
  state %kv[2]           : rows {k: f16[1, 4], v: f16[1, 4]} paged 64
  graph decode (T tokens, R out_rows, S sequences) {
    input %ids           : i32[T]
    input %pos           : i32[T]
    input %out_rows      : i32[R]
    %cs = rope_table %pos {dim=4, theta=100000} : f32[T, 4]
    %x0 = embed %ids, @embed : f32[T, 8]
    %xn = repeat 0..2 (%x = %x0) {
      %h = rmsnorm %x, @attn_norm {eps=1e-05} : f32[T, 8]
      %qkv = matmul %h, @wqkv : f32[T, 16] !kernel(gemv, rows>=3: flat_gemm)
      %q, %k, %v = split %qkv {sizes=[8, 4, 4]} : f32[T, 8], f32[T, 4], f32[T, 4]
      %qr = rope %q, %cs {heads=2} : f32[T, 8]
      %kr = rope %k, %cs {heads=1, pairs=adjacent} : f32[T, 4]
      kv_append %kv, %kr, %v
      %a = attention %qr, %kv {heads=2, kv_heads=1, causal, window=[0, 16]} : f32[T, 8]
      %x1 = fuse {
        %o = matmul %a, @pair[1] : f32[T, 8]
        %x2 = add %x, %o : f32[T, 8]
        yield %x2
      } : f32[T, 8] !slot(2)
      yield %x1
    } : f32[T, 8] !on(dev0, layer>=1: dev1)
    %last = rows %xn, %out_rows : f32[R, 8]
    %logits = matmul %last, @embed : f32[R, 32]
    yield %logits
  }
}
`

func TestParsePrint(t *testing.T) {
	m, err := ir.Parse("small.ir", []byte(small), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.String(); got != small {
		t.Errorf("printed:\n%s", got)
	}
}

func TestVerifySmall(t *testing.T) {
	m, err := ir.Parse("small.ir", []byte(small), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m); err != nil {
		t.Error(err)
	}
	c := m.Clone()
	if err := ir.Verify(c); err != nil {
		t.Error(err)
	}
	if c.String() != m.String() {
		t.Errorf("the clone prints\n%s", c)
	}
}
