package compiler

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
)

// headKinds are the sections medusa of the tiny Llama: heads with matrices of
// their own, behind the model's first rows, behind all of them, and a chained head.
var headKinds = map[string]string{
	"own": "own.pt\n  choices: [1, 4, 3]", "shared": "shared.safetensors\n  vocab: 32\n  choices: [1, 4, 3, 2]",
	"whole": "shared.safetensors", "chain": "chain/medusa_lm_head.safetensors\n  heads: 3",
}

// medusaFile writes a specification of a model folder with heads.
func medusaFile(t *testing.T, folder, section string) string {
	t.Helper()
	for _, path := range []*string{&folder, &section} {
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(file, []byte("iflow: 1\nmodel_dir: "+folder+"\nmedusa:\n  file: "+section+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tinyMedusa is the tiny Llama with heads.
func tinyMedusa(t *testing.T, section string) string {
	return medusaFile(t, "../../spec/testdata/families/llama", "../../spec/testdata/medusa/"+section)
}

// TestSpreadHeads: rank 0 of several has the heads, whatever the arrangement.
func TestSpreadHeads(t *testing.T) {
	t.Parallel()
	for kind, section := range headKinds {
		file := tinyMedusa(t, section)
		for _, devices := range []string{"0;1", "0&1", "0&1;2&3"} {
			t.Run(kind+" "+devices, func(t *testing.T) {
				t.Parallel()
				spreadModel(t, file, devices)
			})
		}
	}
}

// A headCase is a way to compile the demo model with heads and to run it.
type headCase struct {
	devices, quant, kv string
	batch              int
}

// headCases draws cases in which every two values of different kinds meet.
func headCases(seed uint64) (list []headCase) {
	var all []headCase
	for _, devices := range []string{"0;1", "0&1", "0&1;2&3"} {
		for _, quant := range []string{"f16", "q8_b32t2", "q4_b64"} {
			for _, kv := range []string{"f16", "bf16", "q8_b32t2"} {
				for _, batch := range []int{1, 4} {
					all = append(all, headCase{devices, quant, kv, batch})
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	met := map[[2]string]bool{}
	pairs := func(c headCase) (out [][2]string) {
		v := []string{c.devices, "weights " + c.quant, "state " + c.kv, fmt.Sprint(c.batch)}
		for i := range v {
			for j := range i {
				out = append(out, [2]string{v[j], v[i]})
			}
		}
		return out
	}
	for least := 6; least > 0; least-- { // of new pairs
		for _, c := range all {
			fresh := slices.DeleteFunc(pairs(c), func(p [2]string) bool { return met[p] })
			if len(fresh) < least {
				continue
			}
			for _, p := range fresh {
				met[p] = true
			}
			list = append(list, c)
		}
	}
	return list
}

// TestDemoMedusaSpread: on several devices the demo model with its heads writes
// what it writes without, for all types of weights and states, and where only
// layers are apart accepts what it accepts on one device.
func TestDemoMedusaSpread(t *testing.T) {
	devicetest.NeedCompiler(t)
	t.Parallel()
	file := demoMedusa(t)
	for _, c := range irtest.Sample(t, 1, headCases(irtest.Seed(t))) {
		t.Run(fmt.Sprint(c.devices, " ", c.quant, " ", c.kv, " ", c.batch), func(t *testing.T) {
			t.Parallel()
			model := func(devices string) engine.Model {
				p, err := generate(file, Options{Quant: c.quant, KV: c.kv, Devices: devices})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { p.set.Close() })
				return loaded(t, p)
			}
			parted := model(c.devices)
			prompts := [][]int32{{400, 401, 402}, {500, 20}, {700, 701, 30, 31}, {11}}[:c.batch]
			want, _ := writeHeads(t, parted, prompts, false)
			got, accepted := writeHeads(t, parted, prompts, true)
			if !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("with heads %v, without %v", got, want)
			}
			if c.devices != "0;1" {
				return
			}
			on, same := writeHeads(t, model(""), prompts, true)
			if !slices.EqualFunc(got, on, slices.Equal) || accepted != same {
				t.Errorf("%d accepted of %v, on one device %d of %v", accepted, got, same, on)
			}
		})
	}
}

// writeHeads continues prompts and gives how many drafted tokens were accepted.
func writeHeads(t *testing.T, m engine.Model, prompts [][]int32, draft bool) ([][]int32, int64) {
	t.Helper()
	e := openMedusa(t, m, len(prompts))
	out := decodeAll(t, e, m, prompts, draftedTokens, draft)
	accepted := e.Stats().Accepted
	if draft && accepted == 0 {
		t.Error("nothing was accepted")
	}
	return out, accepted
}

// TestChainSpread: a chained head says on several devices what it says on one, and
// sequences that it drafts for go on as without.
func TestChainSpread(t *testing.T) {
	devicetest.NeedCompiler(t)
	t.Parallel()
	file := tinyMedusa(t, headKinds["chain"])
	for _, devices := range irtest.Sample(t, 1, []string{"0;1", "0&1", "0&1;2&3"}) {
		t.Run(devices, func(t *testing.T) {
			t.Parallel()
			p, err := generate(file, Options{Quant: "f32", Devices: devices})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.set.Close() })
			m := loaded(t, p)
			chainLikeTorch(t, m)
			chainChangesNothing(t, m, chainPrompts, draftedTokens)
		})
	}
}
