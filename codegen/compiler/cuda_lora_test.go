package compiler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/engine"
)

// TestEmulatedAdapters: with the adapters that PEFT saved, models of the CUDA target compute
// what transformers does, under emulation.
func TestEmulatedAdapters(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, name := range irtest.Sample(t, 1, adaptedModels(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			likeTransformers(t, name, loraModels+name, Options{Quant: "f32", Target: "cuda-emu"}, emulatedModel)
		})
	}
}

// TestEmulatedAdapterRanks: the same for ranks on several GPUs, and on a GPU and the CPU.
func TestEmulatedAdapterRanks(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, devices := range irtest.Sample(t, 1, []string{"0&1", "0;1", "cpu;0", "0;cpu"}) {
		t.Run(devices, func(t *testing.T) {
			t.Parallel()
			likeTransformers(t, "llama", loraModels+"llama", Options{Quant: "f32", Target: "cuda-emu", Devices: devices}, emulatedRanks)
		})
	}
}

// emulatedRanks compiles every rank of a program for its device, GPUs under emulation.
func emulatedRanks(t *testing.T, p *Program) engine.Model {
	t.Helper()
	cache, err := toolchain.OpenCache(testCache(t))
	if err != nil {
		t.Fatal(err)
	}
	p.isas = quick(p.isas)
	p.Model.identify(&p.whole.CPU.Manifest, nil)
	return engine.Model{Manifest: &p.whole.CPU.Manifest, Device: ranksOn(t, p, func(r *Rank, lib *cpu.Library) device.Device {
		if r.CUDA == nil {
			return lib
		}
		return emulatedDevice(t, cache, &r.CPU.Manifest, r.CUDA, func(*cuda.Device) {})
	})}
}

// deltas are what an adapter adds to weights, by name.
type deltas map[string]*tensor.Tensor

func (d deltas) Weight(v *ir.Value, _ []int) (*tensor.Tensor, error) { return d[v.Name], nil }

// packedAdapter makes up an adapter for some sites: its matrices, and what they add. It
// leaves out every third site.
func packedAdapter(rng *rand.Rand, sites []layout.Site, rank int) (*lora.Packed, deltas) {
	p, d := &lora.Packed{}, deltas{}
	for i, s := range sites {
		d[s.Weight] = tensor.New(tensor.F32, s.Rows, s.Cols)
		if i%3 == rank%3 {
			p.Sites = append(p.Sites, lora.PackedSite{})
			continue
		}
		wide, panels := layout.Round16(s.Cols), layout.Round16(s.Rows)/16
		site := lora.PackedSite{Rank: rank, A: len(p.Data), B: len(p.Data) + rank*wide}
		p.Sites, p.Data = append(p.Sites, site), append(p.Data, make([]float32, rank*wide+panels*rank*16)...)
		a, b := p.Data[site.A:], p.Data[site.B:]
		for r := range rank {
			for k := range s.Cols {
				a[r*wide+k] = float32(rng.NormFloat64() / math.Sqrt(float64(s.Cols)))
			}
			for n := range s.Rows {
				v := float32(rng.NormFloat64())
				b[n/16*rank*16+r*16+n%16] = v
				for k := range s.Cols {
					d[s.Weight].F[n*s.Cols+k] += float64(v) * float64(a[r*wide+k])
				}
			}
		}
	}
	return p, d
}

// TestEmulatedAdapterMatmuls: adapters of several ranks, mixed in a batch, add to every
// implementation of a matmul what they add in the interpreter: from floats that the matmul
// rounds, in sizes that no tile divides, for few rows and for many. Rows without an adapter
// have the bits of a step without adapters.
func TestEmulatedAdapterMatmuls(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	seed := irtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1)) // the products of TestEmulatedMatmuls
	for i, name := range irtest.Sample(t, 1, weightTypes) {
		dt, _ := tensor.ParseDType(name)
		text := products(rng, dt)
		t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
			t.Parallel()
			turns := [][]int{{1, 33}, {5, 41}, {9, 32}} // each meets a third of the types
			adaptedModule(t, text, seed, irtest.Sample(t, 1, turns[i%len(turns)]))
		})
	}
}

// TestEmulatedAdapterPrologues: the same behind row ops that a block may compute again, and
// behind one whose result outlives the region, as only annotated files of IR have it.
func TestEmulatedAdapterPrologues(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	const text = `module prologues {
weight @e : f32[40, 50] from "e"
weight @w : f32[37, 50] from "w"
weight @v : f32[20, 50] from "v"
graph encode (T tokens) {
  input %%ids : i32[T]
  %%x = embed %%ids, @e
  %s = fuse {
    %%a = mul %%x, %%x
    %%p = matmul %%a, @w
    yield %s
  }
  %%h = mul %%x, %%x
  %%z = matmul %%h, @v
  yield %s, %%z
}
}
`
	for _, c := range irtest.Sample(t, 1, [][2]string{{"%y", "%p"}, {"%n, %y", "%a, %p"}}) {
		t.Run(c[1], func(t *testing.T) {
			t.Parallel()
			adaptedModule(t, fmt.Sprintf(text, c[0], c[1], c[0]), irtest.Seed(t), irtest.Sample(t, 2, []int{1, 5, 9, 32, 33, 41}))
		})
	}
}

// adaptedModule compares every implementation of a module's matmuls with the interpreter,
// for several numbers of rows.
func adaptedModule(t *testing.T, text string, seed uint64, rows []int) {
	t.Helper()
	m := madeUp(t, text, seed)
	a := &adaptedBatch{madeUpModel: m}
	for n, rank := range []int{1, 7, 32, 150} {
		packed, adds := packedAdapter(rand.New(rand.NewPCG(seed, uint64(n))), m.code.Sites, rank)
		a.packed, a.deltas = append(a.packed, packed), append(a.deltas, adds)
	}
	t.Logf("IFLOWC_TEST_SEED=%d:\n%s", seed, text)
	for _, impl := range irtest.Sample(t, 2, implsOf(m.plan)) { // TestEmulatedMatmuls has all
		m.change(t, using(impl))
		for _, n := range rows {
			a.compare(t, impl, n)
		}
	}
}

// An adaptedBatch runs batches of a made-up module with adapters.
type adaptedBatch struct {
	*madeUpModel
	packed []*lora.Packed
	deltas []interp.Weights
}

// compare compares a batch of rows, of sequences of three tokens each with another adapter
// or none, with the interpreter and with the batch without adapters.
func (a *adaptedBatch) compare(t *testing.T, impl string, rows int) {
	t.Helper()
	step := &interp.Step{Adapters: a.deltas}
	for i, id := range prompt(rows, rows) {
		seq := i / 3
		step.IDs, step.Seq, step.Adapter = append(step.IDs, int(id)%40), append(step.Seq, seq), append(step.Adapter, (seq+rows)%(len(a.packed)+1)-1)
	}
	adapted, plain := a.run(t, step, true), a.run(t, step, false)
	none := *step
	none.Adapter = nil
	want, before := a.interpret(t, step), a.interpret(t, &none)
	for o, out := range want {
		cols := a.mod.Graphs[0].Body.Yield[o].Type.Cols()
		for r := range rows {
			what := fmt.Sprintf("%s, %d rows: output %d, row %d with adapter %d", impl, rows, o, r, step.Adapter[r])
			if step.Adapter[r] < 0 {
				sameBits(t, what, adapted[o][r], plain[o][r])
				continue
			}
			// Only what the adapter adds is compared: implementations round the rest.
			added, wanted := make([]float32, cols), make([]float64, cols)
			for j := range cols {
				added[j] = adapted[o][r][j] - plain[o][r][j]
				wanted[j] = out.F[r*cols+j] - before[o].F[r*cols+j]
			}
			sameRow(t, what, added, wanted, 1e-5)
		}
	}
}

func (a *adaptedBatch) interpret(t *testing.T, step *interp.Step) []*tensor.Tensor {
	t.Helper()
	out, err := interp.Run(a.mod, a.mod.Graphs[0].Name, step, a.weights, interp.NewStates())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// run computes a step on the model's device. It returns the rows of each output.
func (a *adaptedBatch) run(t *testing.T, in *interp.Step, adapted bool) (out [][][]float32) {
	t.Helper()
	n := len(in.IDs)
	cfg := device.Config{Threads: 1, Weights: a.model.Weights, Pages: n, MaxTokens: n, MaxOutRows: 1, MaxSeqs: n}
	for _, o := range a.model.Manifest.Graphs[0].Outputs {
		cfg.Outputs = append(cfg.Outputs, device.Array{Rows: n, Cols: o.Cols})
	}
	for _, s := range a.code.Sites {
		cfg.Sites = append(cfg.Sites, manifest.Site{Weight: s.Weight, Rows: s.Rows, Cols: s.Cols})
	}
	c, err := a.model.Device.Start(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, p := range a.packed {
		if err := c.SetAdapter(int32(i), p); err != nil {
			t.Fatal(err)
		}
	}
	s, err := device.NewStep(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	s.Tokens, s.Seqs, s.Adapted = n, in.Seq[n-1]+1, adapted
	for i := range n {
		q := in.Seq[i]
		s.ID[i], s.Seq[i], s.Pos[i], s.Slot[i] = int32(in.IDs[i]), int32(q), int32(i-int(s.First[q])), int32(i-int(s.First[q]))
		s.First[q+1], s.Adapter[q] = int32(i+1), int32(in.Adapter[i])
	}
	if err := c.Submit(s)(); err != nil {
		t.Fatal(err)
	}
	for o := range a.model.Manifest.Graphs[0].Outputs {
		used, cols := a.mod.Graphs[0].Body.Yield[o].Type.Cols(), cfg.Outputs[o].Cols
		var rows [][]float32
		for r := range n {
			rows = append(rows, slices.Clone(s.Out[o][r*cols:][:used]))
		}
		out = append(out, rows)
	}
	return out
}

// TestEmulatedAdapterBatches: models compute with adapters what they compute on the CPU, for
// every implementation of their matmuls, for few and for many rows of a step, and in
// replayed graphs. Sequences without an adapter have the bits of a batch without any.
func TestEmulatedAdapterBatches(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	model, types := loraModels+"llama", []string{"f32"} // each compiles a whole model; TestEmulatedAdapterMatmuls samples more
	if irtest.All() {
		model, types = demoSpec, []string{"f32", "q4_b64"}
	}
	for _, quant := range types {
		t.Run(quant, func(t *testing.T) {
			t.Parallel()
			p, err := generate(model, Options{Quant: quant, Target: "cuda-emu"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			cpu, i := loaded(t, p), 0
			some := func(string) bool { i++; return i%3 == 0 }
			paths := []string{randomAdapter(t, cpu.Manifest.Sites, 4, all), randomAdapter(t, cpu.Manifest.Sites, 17, some)}
			adapter := func(seq int) int { return seq%3 - 1 }
			batch := [][]int32{prompt(15, 1), prompt(2, 2), prompt(14, 3), prompt(9, 5)}
			for _, ids := range batch {
				for i := range ids {
					ids[i] %= int32(cpu.Manifest.Vocab)
				}
			}
			want := adaptedLogits(t, cpu, engine.Options{Threads: 1}, batch, paths, adapter)
			for _, impl := range irtest.Sample(t, 2, implsOf(&p.whole.CUDA.Plan)) {
				m := emulatedWith(t, p, using(impl))
				for _, most := range irtest.Sample(t, 1, []int{4, 64}) {
					opt := engine.Options{Threads: 1, MaxTokens: most}
					plain := logitsOf(t, m, opt, batch)
					for q, got := range adaptedLogits(t, m, opt, batch, paths, adapter) {
						what := fmt.Sprintf("%s, %d tokens a step, sequence %d", impl, most, q)
						if adapter(q) < 0 {
							sameBits(t, what, got, plain[q])
						} else if slices.Equal(got, plain[q]) {
							t.Errorf("%s: the adapter has no effect", what)
						}
						sameRow(t, what, got, asFloat64(want[q]), adaptedTolerance(impl))
					}
				}
			}
		})
	}
}

// adaptedTolerance is tolerance with a random adapter, which makes activations larger, so
// that more of them round another way: with q4_b64 and ten adapters by up to 0.1 of the
// largest logit from the CPU, without the adapter by 1.1.
func adaptedTolerance(impl string) float64 { return 4 * tolerance(impl) }

func asFloat64(list []float32) (out []float64) {
	for _, x := range list {
		out = append(out, float64(x))
	}
	return out
}
