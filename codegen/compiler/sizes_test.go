package compiler

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// TestOddSizes: models of every family start from their weights file and compute
// what the interpreter does, in sizes that neither panels of 16 rows nor blocks of
// 32 or 64 columns divide, nor lines of 64 bytes the tiles of q8_b32t2. The
// tolerance is for activations that round the other way to eight bits.
func TestOddSizes(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	type sizes struct {
		family string
		Options
		factor int
	}
	var cases []sizes
	for i, family := range families(t, 1) {
		types := irtest.Sample(t, 1, weightTypes)
		if irtest.All() { // three in turn: each type meets 25 families
			at := 3 * i % len(weightTypes)
			types = slices.Concat(weightTypes, weightTypes)[at : at+3]
		}
		for j, quant := range types {
			c := sizes{family, Options{Quant: quant, KV: []string{"", "f32"}[(i+j/2)%2]}, []int{2, 6, 3, 10}[(i+j)%4]}
			if strings.HasPrefix(family, "sparse_") {
				c.KV = "f32" // keys in half precision would let some tokens choose others to attend to
			}
			if dt, _ := tensor.ParseDType(quant); dt.IsBlock() && (i+j)%5 == 0 {
				c.SparseOutliers = 0.03
			}
			cases = append(cases, c)
		}
	}
	for _, c := range cases {
		t.Run(c.family+"/"+c.Quant, func(t *testing.T) {
			t.Parallel()
			t.Logf("%d times as wide, %s", c.factor, c.KV)
			likeInterpreter(t, wider(t, c.family, c.factor), c.Options, 4e-2, loaded)
		})
	}
}

// TestWeightsFile: the file that is packed is the one that the manifest
// describes, in every type: the loader would refuse another.
func TestWeightsFile(t *testing.T) {
	t.Parallel()
	for _, family := range families(t, 1) {
		for _, factor := range irtest.Sample(t, 1, []int{2, 6}) {
			dir := wider(t, family, factor)
			for _, quant := range irtest.Sample(t, 6, weightTypes) {
				p, err := generate(dir, Options{Quant: quant})
				if err != nil {
					t.Fatalf("%s: %v", family, err)
				}
				emulatedWeights(t, p)
				p.Close()
			}
		}
	}
}

// families draws n of the tiny models of spec/testdata that wider can widen, by
// irtest.Order, and gives their names; all of them if irtest.All says so.
func families(t *testing.T, n int) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../spec/testdata/families/*/expected.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, i := range irtest.Order(t, files, folderName) {
		if name := folderName(files[i]); (irtest.All() || len(names) < n) && canWiden(t, name) {
			names = append(names, name)
		}
	}
	return names
}

// folderName is the name of a file's folder.
func folderName(file string) string { return filepath.Base(filepath.Dir(file)) }

// canWiden says whether wider can widen a model. It cannot widen recurrent models and
// those with sizes by layer or several residual streams, whose tensors have sums and
// products of sizes, or whose router is stored transposed.
func canWiden(t *testing.T, name string) bool {
	t.Helper()
	dir := "../../spec/testdata/families/" + name
	if _, err := os.Stat(dir); err != nil || strings.HasPrefix(name, "gemma4") || name == "gemma3n" || name == "ernie4_5_vl_moe" {
		return false
	}
	m, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mod, err := m.Lower()
	if err != nil {
		t.Fatal(err)
	}
	return !slices.ContainsFunc(mod.States, func(s *ir.Value) bool { return s.State.Fixed })
}

// widths are the keys of a config.json that name a number of columns; those of
// heads, experts, layers and positions stay.
var widths = regexp.MustCompile(`^(hidden_size|intermediate_size|head_dim|d_model|moe_intermediate_size|(de|en)coder_ffn_dim|n_embd|n_inner|embedding_size|(kv|q)_lora_rank|` +
	`qk_(nope_|rope_)?head_dim|v_head_dim|ffn_hidden_size|ffn_dim|d_ff|d_kv|rotary_dim|dim|hidden_dim|word_embed_proj_dim|shared_(expert_)?intermediate_size|(in|out)put_embedding_size|index_head_dim|global_head_dim|intermediate_size_mlp|hidden_size_per_layer_input)$`)

// vocabulary is the size of that of all tiny models.
const vocabulary = 40

// constant are the tensors of experts, heads and buckets alone; of tallTables
// the rows are positions, token types, experts, heads or classes; vocabularyRows
// are as many as the vocabulary only by chance: two matrices of 20, four heads of 10.
var (
	constant       = regexp.MustCompile(`relative_attention_bias|e_score_correction_bias|sinks`)
	tallTables     = regexp.MustCompile(`position|rel_embeddings|_type_|wpe|experts\.[a-z_]+_bias$|router|indexer\.weights_proj|\.(gate|wg)\.weight$|^classifier\.(out_proj\.)?(weight|bias)$`)
	vocabularyRows = regexp.MustCompile(`shared_mlp|q_b_proj`)
)

// grows says whether dimension i of a tensor grows with the width.
func grows(x checkpoint.Info, i int) bool {
	stacked := len(x.Shape) == 3 || len(x.Shape) == 2 && strings.HasSuffix(x.Name, "_norm.weight") // one matrix an expert, one norm a head
	switch {
	case x.Shape[i] == 1 || constant.MatchString(x.Name):
		return false
	case strings.HasSuffix(x.Name, ".conv.weight"): // output and input channels, kernel
		return i < 2
	case x.Shape[i] == vocabulary:
		return vocabularyRows.MatchString(x.Name)
	}
	return i > 0 || !stacked && !tallTables.MatchString(x.Name)
}

// wider is a copy of a family's tiny model that is so many times as wide, with
// made-up weights.
func wider(t *testing.T, family string, factor int) string {
	t.Helper()
	from, dir := filepath.Join("../../spec/testdata/families", family), t.TempDir()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() { // modules behind the model, which the compared outputs leave out
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Name() == "config.json":
			data = widerConfig(t, data, factor)
		case filepath.Ext(f.Name()) == ".safetensors":
			data = widerTensors(t, filepath.Join(from, f.Name()), factor)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func widerConfig(t *testing.T, data []byte, factor int) []byte {
	t.Helper()
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	text := config
	if nested, ok := config["text_config"].(map[string]any); ok {
		text = nested
	}
	for key, v := range text {
		if n, ok := v.(float64); ok && widths.MatchString(key) {
			text[key] = n * float64(factor)
		}
	}
	if scaling, ok := config["rope_scaling"].(map[string]any); ok { // one factor a frequency
		for key, v := range scaling {
			if list, ok := v.([]any); ok {
				scaling[key] = slices.Repeat(list, factor)
			}
		}
	}
	out, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// widerTensors is a file of tensors as wide, of numbers drawn by the seed.
func widerTensors(t *testing.T, path string, factor int) []byte {
	t.Helper()
	set, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	shapes := map[string][]int{}
	for _, x := range set.Tensors() {
		shapes[x.Name] = slices.Clone(x.Shape)
		for i, d := range x.Shape {
			if grows(x, i) {
				shapes[x.Name][i] = d * factor
			}
		}
	}
	return randomTensors(t, shapes)
}

// randomTensors is a file of tensors of some shapes, of numbers drawn by the seed.
func randomTensors(t *testing.T, shapes map[string][]int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(irtest.Seed(t), uint64(len(shapes))))
	return tensorFile(t, shapes, func(name string) (values []float32) {
		shape, size := shapes[name], 1
		for _, d := range shape {
			size *= d
		}
		scale, middle := 0.1, 0.5
		if len(shape) > 1 {
			scale, middle = 1/math.Sqrt(float64(shape[len(shape)-1])), 0
		}
		for range size {
			values = append(values, float32(middle+scale*rng.NormFloat64()))
		}
		return values
	})
}

// tensorFile is a safetensors file of tensors of some shapes.
func tensorFile(t *testing.T, shapes map[string][]int, values func(name string) []float32) []byte {
	t.Helper()
	header, data := map[string]any{}, []byte(nil)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		at := len(data)
		for _, x := range values(name) {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		header[name] = map[string]any{"dtype": "F32", "shape": shapes[name], "data_offsets": []int{at, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), append(text, data...)...)
}

// TestBlocksOfState: heads that are no whole blocks of the KV cache's type are
// refused with the type that takes them.
func TestBlocksOfState(t *testing.T) {
	t.Parallel()
	_, err := generate("../../spec/testdata/families/llama", Options{KV: "q8_b32t2"})
	if err == nil || !strings.Contains(err.Error(), "cannot be of type q8_b32t2: heads of 8 numbers are not whole blocks of 32; --kv f16") {
		t.Error(err)
	}
}
