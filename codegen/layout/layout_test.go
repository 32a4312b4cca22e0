package layout

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// parsed is a module as the passes leave it.
func parsed(t *testing.T, name, text string) *ir.Module {
	t.Helper()
	m, err := ir.Parse(name, []byte(text), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func llama(t *testing.T) *Layout {
	t.Helper()
	text, err := os.ReadFile("../cpu/testdata/llama.ir")
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(parsed(t, "llama.ir", string(text)), 1024)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSchedule: the regions of a decoder, in order, as data.
func TestSchedule(t *testing.T) {
	t.Parallel()
	l := llama(t)
	var got []string
	for i, r := range l.Regions {
		if r.Number != i {
			t.Errorf("region %d has number %d", i, r.Number)
		}
		in := ""
		if r.Loop != nil {
			in = " in the loop"
		}
		got = append(got, strings.TrimPrefix(fmt.Sprintf("%T %s", r.Work, r.Role), "*layout.")+in)
	}
	want := []string{
		"Rows tokens", "Matmul tokens in the loop", "Attention tokens in the loop", "Matmul tokens in the loop",
		"Matmul tokens in the loop", "Matmul tokens in the loop", "Rows out_rows", "Matmul out_rows",
	}
	if !slices.Equal(got, want) {
		t.Errorf("regions %q, expected %q", got, want)
	}
	m := l.Regions[1].Work.(*Matmul)
	if m.Weight.K != 64 || m.Act.String() != "a8_b64" || len(m.Before) != 1 || m.Direct || m.Tail.Group != 16 {
		t.Errorf("wqkv: %+v", m)
	}
	if rows := m.Call.Defaults([]string{"gemv", "flat_gemm", "gemm"}); !slices.Equal(rows, []int{1, 2, 128}) {
		t.Errorf("defaults of wqkv: %v", rows)
	}
	if g := l.Graphs[0]; len(g.Schedule) != 4 || g.Schedule[1].Loop.Layers() != 2 || !slices.Equal(g.Lookups, []Lookup{{"id", 96}}) {
		t.Errorf("graph %+v", g)
	}
}

// TestPlaces: what one region computes and another reads has a place, what
// stays in a region has none, and outputs lie in the caller's arrays.
func TestPlaces(t *testing.T) {
	t.Parallel()
	l := llama(t)
	for _, v := range l.Module.Graphs[0].Values() {
		p, ok := l.Place(v)
		switch v.Name {
		case "x0", "x", "xn", "a":
			if !ok || p.Buffer == nil || p.Pitch != 64 || p.Symbol != "ROW_"+strings.ToUpper(v.Name) {
				t.Errorf("%s lies at %+v (%v)", v, p, ok)
			}
		case "logits":
			if !ok || p.Buffer != nil || p.Output != 0 || p.Pitch != 96 {
				t.Errorf("%s lies at %+v (%v)", v, p, ok)
			}
		case "gate", "up", "act":
			if ok {
				t.Errorf("%s, which does not leave its region, lies at %+v", v, p)
			}
		}
	}
	for i, b := range l.Buffers {
		if b.Number != i || b.Cols == 0 {
			t.Errorf("buffer %d: %+v", i, b)
		}
	}
}

// TestViews: a split in the slot of its argument is no region and copies nothing; its
// parts, and their parts, start at columns of the argument's rows. Another split copies.
func TestViews(t *testing.T) {
	t.Parallel()
	l, err := New(parsed(t, "views.ir", `module m {
  weight @e : f32[40, 64] from "e"
  weight @w : f32[32, 32] from "w"
  graph g (T tokens) {
    input %ids : i32[T]
    %x = embed %ids, @e !slot(0)
    %p, %q = split %x {sizes=[16, 48]} !slot(0, 0)
    %q1, %q2 = split %q {sizes=[32, 16]} !slot(0, 0)
    %y = matmul %q1, @w !slot(1)
    %a, %b = split %x {sizes=[48, 16]} !slot(0, 0)
    %z = matmul %y, @w !slot(2)
    %c, %d = split %z {sizes=[8, 24]} !slot(3, 4)
    %k = matmul %z, @w !slot(5)
    %r = concat %a, %b, %c, %d, %k, %p, %q2 !slot(6)
    yield %r
  }
}`), 64)
	if err != nil {
		t.Fatal(err)
	}
	var regions []string
	for _, r := range l.Regions {
		if w, ok := r.Work.(*Rows); ok {
			regions = append(regions, opNames(w.Ops))
		}
	}
	if want := []string{"embed, split, split", "split", "concat"}; !slices.Equal(regions, want) {
		t.Errorf("row by row: %q, expected %q", regions, want)
	}
	x := l.places[l.Module.Graphs[0].FindOp("split").Args[0].Value]
	for _, v := range l.Module.Graphs[0].Values() {
		p, _ := l.Place(v)
		column, view := map[string]int{"p": 0, "q1": 16, "q2": 48, "a": 0, "b": 48}[v.Name]
		switch {
		case view && (p.Buffer != x.Buffer || p.Column != column || p.Pitch != 64 || p.Cols != v.Type.Cols()):
			t.Errorf("%s lies at %+v, expected column %d of %%x", v, p, column)
		case !view && (p.Column != 0 || p.Pitch != Round16(p.Cols)):
			t.Errorf("%s lies at %+v, expected rows of its own", v, p)
		}
	}
	if n := len(l.Buffers); n != 6 {
		t.Errorf("%d buffers, expected those of x, y, z, c, d and k", n)
	}
}

// TestWeights: weights of a layer lie together, one layer behind the other,
// and names that C cannot tell apart get numbers.
func TestWeights(t *testing.T) {
	t.Parallel()
	l := llama(t)
	at := int64(0)
	for _, w := range l.Packed {
		if w.Offset != at {
			t.Errorf("weight %s %v at %d, expected %d", w.Name, w.Index, w.Offset, at)
		}
		at += w.Bytes
	}
	strides := map[int64]bool{}
	for _, w := range l.Weights {
		if w.Layers != nil {
			strides[w.Stride] = true
		}
	}
	if len(strides) != 1 {
		t.Errorf("strides of the layers' weights: %v", strides)
	}
	s := symbols{}
	if a, b, c := s.of("W_", "a.b"), s.of("W_", "A_b"), s.of("ROW_", "a.b"); a != "W_A_B" || b != "W_A_B_2" || c != "ROW_A_B" {
		t.Errorf("names %s, %s and %s", a, b, c)
	}
}

// TestErrors: what no target can compute is one line that says where.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"both.ir", `module m {
  weight @w : f32[16, 16] from "w"
  graph g (T tokens) {
    input %ids : i32[T]
    %x = embed %ids, @w
    %y = add %x, @w
    yield %y
  }
}`, "both.ir:6:"},
		{"state.ir", `module m {
  state %s : rows {k: f16[1, 16], v: f32[1, 16]} paged 64
  weight @w : f32[16, 16] from "w"
  graph g (T tokens) {
    input %ids : i32[T]
    %x = embed %ids, @w
    yield %x
  }
}`, "state.ir:2:3: state %s: it is rows {k: f16[1, 16], v: f32[1, 16]} paged 64; targets keep k and v as TYPE[heads, width], of one type"},
		{"input.ir", small("input %my : i32[T]", "%y = embed %my, @w\nyield %y"), "input %my counts tokens: a step gives ids, pos and types"},
		{"sequences.ir", small("input %q : i32[S]", "%y = rows %x, %q\nyield %y"), "input %q counts sequences"},
		{"floats.ir", small("input %h : f32[T, 16]", "%y = add %x, %h\nyield %y"), "input %h, of an earlier step, has that step's rows"},
		{"ids.ir", small("", "yield %x, %ids"), "yield of %ids, which is i32[T]: a graph yields rows of f32"},
		{"rounded.ir", small("", "%y = quantize_act %x {type=bf16}\nyield %y"), "yield of %y, which is bf16[T, 16]"},
		{"many.ir", small("", "yield "+strings.Repeat("%x, ", 8)+"%x"), "9 outputs; a step supports at most 8"},
		{"asked.ir", small("", "%y = rows %x, %out_rows\n%a = attention %y, %s {heads=1, kv_heads=1}\nyield %a"), "asked.ir:10:1: attention: %y counts out_rows"},
		{"append.ir", small("", "%y = rows %x, %out_rows\nkv_append %s, %y, %y\nyield %y"), "append.ir:10:1: kv_append: %y counts out_rows"},
		{"twice.ir", small("", "%y = rows %x, %out_rows\n%z = rows %y, %out_rows\nyield %z"), "twice.ir:10:1: rows: %y counts out_rows"},
		{"pick.ir", small("", "%y = rows %x, %ids\nyield %y"), "pick.ir:9:1: rows: %ids does not count rows of tokens; out_rows does"},
		{"place.ir", small("", "%c = rope_table %out_rows {dim=4}\nyield %c"), "place.ir:9:1: rope_table: %out_rows counts out_rows"},
		{"best.ir", small("", "%i = argmax %x\n%y = embed %i, @w\nyield %y"), "best.ir:10:1: embed: %i is computed"},
		{"carry.ir", small("", "%y, %z = repeat 0..2 (%a = %x, %b = %ids) {\nyield %a, %b\n}\nyield %y"), "carry.ir:9:1: repeat: %ids is i32[T]; a repeat carries rows of f32"},
		{"nested.ir", small("", "%y = repeat 0..2 (%a = %x) {\n%b = repeat 0..2 (%c = %a) {\n%d = tanh %c\nyield %d\n}\nyield %b\n}\nyield %y"), "nested.ir:10:1: repeat: a repeat inside a repeat"},
	} {
		m, err := ir.Parse(c.name, []byte(c.text), ops.Table)
		if err == nil {
			err = ir.Verify(m)
		}
		if err == nil {
			_, err = New(m, 64)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q in it", c.name, err, c.want)
		}
	}
}

// small is a module with one more input and the rest of a graph's body.
func small(input, body string) string {
	if input == "" {
		input = "input %pos : i32[T]"
	}
	return "module m {\nweight @w : f32[16, 16] from \"w\"\nstate %s : rows {k: f32[1, 16], v: f32[1, 16]} paged 64\n" +
		"graph g (T tokens, R out_rows, S sequences) {\ninput %ids : i32[T]\ninput %out_rows : i32[R]\n" + input + "\n%x = embed %ids, @w\n" +
		body + "\n}\ngraph w (T tokens, S sequences) {\ninput %ids : i32[T]\n%k = embed %ids, @w\nkv_append %s, %k, %k\nyield %k\n}\n}"
}
