package cpu

import (
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// oneRank is the program of a rank between two others, in a group of two.
const oneRank = `module m {
  weight @wo[2..5] : f32[40, 40] from "o.{i}"
  weight @bo[2..5] : f32[40] from "b.{i}"
  weight @head : f32[50, 40] from "head"
  graph decode (T tokens, R out_rows) {
    input %ids : i32[T]
    input %out_rows : i32[R]
    %x0 = recv %ids {from=1, cols=40}
    %xn = repeat 2..5 (%x = %x0) {
      %o = matmul %x, @wo
      %s = all_reduce %o {ranks=2}
      %b = add %s, @bo
      %y = add %x, %b
      yield %y
    }
    send %xn {to=5}
    %last = rows %xn, %out_rows
    %part = matmul %last, @head
    %logits = all_gather %part {ranks=2, bounds=[0, 50, 43, 93]}
    %scaled = scale %logits {by=2}
    yield %scaled
  }
}
`

// TestCommRegions: exchanges are regions whose rows are summed in the order of
// ranks together with what follows, and what they tell others is counted.
func TestCommRegions(t *testing.T) {
	t.Parallel()
	m, err := ir.Parse("rank.ir", []byte(oneRank), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m); err != nil {
		t.Fatal(err)
	}
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := Emit(m, cat, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := []manifest.Traffic{{
		Exchanges: 3, ExchangedToken: 3 * 48 * 4, OutRowExchanges: 1, ExchangedOutRow: 64 * 4, // rows are whole vectors of 16
		Sends: 1, SentToken: 48 * 4, Receives: 1, ReceivedToken: 48 * 4,
	}}
	if !slices.Equal(cpu.Traffic, want) {
		t.Errorf("told others %+v, expected %+v", cpu.Traffic, want)
	}
	for _, text := range []string{
		"#define IFL_RANKS 2\n",
		"c->failed = c->comm->recv(c->comm->self, 1, ",
		"c->failed = c->comm->send(c->comm->self, 5, ",
		"(ifl_load((const float *)c->parts[0] + (int64_t)t * 48 + j) + ifl_load((const float *)c->parts[1] + (int64_t)t * 48 + j))",
		"+ 43, (const float *)c->parts[1] + (int64_t)t * 64, 50 * sizeof(float));",
		"if (c->own[tid].failed) return;",
	} {
		if !strings.Contains(cpu.Step, text) {
			t.Errorf("the step lacks %s", text)
		}
	}
	if t.Failed() {
		t.Log(cpu.Step)
	}
}

// TestNoCommInWholeModels: a whole model's step knows nothing of ranks.
func TestNoCommInWholeModels(t *testing.T) {
	t.Parallel()
	m, err := ir.Parse("whole.ir", []byte(strings.NewReplacer(
		"%x0 = recv %ids {from=1, cols=40}", "%x0 = embed %ids, @head",
		"%s = all_reduce %o {ranks=2}", "%s = scale %o {by=1}",
		"    send %xn {to=5}\n", "",
		"%logits = all_gather %part {ranks=2, bounds=[0, 50, 43, 93]}", "%logits = scale %part {by=1}").Replace(oneRank)), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := Emit(m, cat, 64)
	if err != nil {
		t.Fatal(err)
	}
	if cpu.Traffic != nil || strings.Contains(cpu.Step, "comm") {
		t.Errorf("traffic %v in a whole model", cpu.Traffic)
	}
}
