package compiler

import (
	"fmt"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
)

// unfolded has row ops around ops that read other rows: of the embeddings, of a value that
// is computed in front of them, and of a part of a row. What they read is overwritten later.
const unfolded = `module near {
weight @e : f32[40, 37] from "e"
weight @e2 : f32[40, 32] from "e2"
weight @w : f32[37, 111] from "w"
state %s : rows {k: f32[1, 16], v: f32[1, 16]} paged 64 source
graph encode (T tokens, R out_rows, S sequences) {
input %ids : i32[T]
input %pos : i32[T]
%x = embed %ids, @e
%v = scale %x {by=2}
%near = unfold %v {before=1, after=1}
%t = scale %near {by=-0.5}
%m = matmul %t, @w
%again = unfold %m {before=0, after=3}
%e = embed %ids, @e2
%a, %b = split %e {sizes=[16, 16]}
kv_append %s, %a, %b
%c = unfold %b {before=2, after=0}
%d = scale %c {by=3}
%self = unfold %d {before=0, after=0}
yield %x, %m, %again, %self
}
}
`

// TestUnfold: the compiled op gives what the interpreter does, for texts of one token and
// of more.
func TestUnfold(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	eachUnfolded(t, (*madeUpModel).onCPU)
}

// TestEmulatedUnfold is TestUnfold under emulation.
func TestEmulatedUnfold(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	eachUnfolded(t, (*madeUpModel).emulated)
}

func eachUnfolded(t *testing.T, load func(*madeUpModel, *testing.T)) {
	m := madeUp(t, unfolded, 1)
	m.model.Manifest.Network = "encoder_only"
	load(m, t)
	for _, n := range []int{1, 2, 3, 30} {
		m.compare(t, prompt(n, n), 64, 1e-4)
	}
}

// TestConvolutionRows: in encoders with a convolution, the results of a text have the same
// bits alone and in a step with others, for all numbers of threads and of devices.
func TestConvolutionRows(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	models := familyModels(t)
	var texts [][]int32
	for i, n := range []int{1, 9, 2, 24, 3, 17, 64} {
		texts = append(texts, prompt(n, i))
		for j := range texts[i] {
			texts[i][j] %= 40
		}
	}
	for i, opt := range irtest.Sample(t, 2, []Options{{Quant: "f32"}, {Quant: "q8"}, {Quant: "f16", Devices: "0;1"}, {Quant: "q4", Devices: "0&1"}}) {
		for _, name := range irtest.Sample(t, 1, []string{"deberta_v2_conv", "deberta_v2_groups"}) {
			p, err := generate(models[name], opt)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			m := loaded(t, p)
			together := logitsOf(t, m, engine.Options{Threads: 1 + i, MaxTokens: 128}, texts)
			for k, text := range texts {
				alone := logitsOf(t, m, engine.Options{Threads: 1}, [][]int32{text})[0]
				sameBits(t, fmt.Sprintf("%s, %+v, text of %d tokens", name, opt, len(text)), together[k], alone)
			}
		}
	}
}
