package spec

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

var inferflowSpecs = flag.String("inferflow-specs", "../models/testdata/inferflow", "folder of Inferflow's model_spec.json files as MODEL__FILE, which must be read unchanged")

// An inferflowCase maps a model spec of Inferflow to a model of the library, with
// the differences between its files and those that transformers writes today.
type inferflowCase struct {
	name    string   // argument of models.Lookup
	renamed []string // pairs for strings.NewReplacer, applied to the headers
	stored  string   // additional headers
	differs string   // reason why the module differs from the library's
}

const bothEmbeddings = "model.encoder.embed_tokens.weight f32 128112 1024\nmodel.decoder.embed_tokens.weight f32 128112 1024\nlm_head.weight f32 128112 1024\n" +
	"model.encoder.embed_positions.weights f32 1026 1024\nmodel.decoder.embed_positions.weights f32 1026 1024\n"

var inferflowCases = map[string]inferflowCase{
	"aquila_chat2_34b":             {name: "aquila-chat2-34b"},
	"baichuan2_13b_chat":           {name: "baichuan2-13b-chat", differs: "the rows of the 13B's head have unit length too"},
	"baichuan2_7b_chat":            {name: "baichuan2-7b-chat"},
	"bert_base_multilingual_cased": {name: "bert-base-multilingual-cased", renamed: []string{"LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta"}},
	"bloomz_3b":                    {name: "bloomz-3b", renamed: []string{"transformer.", ""}},
	"chatglm2_6b":                  {name: "chatglm2-6b"},
	"deepseek_moe_16b_base":        {name: "deepseek-moe-16b-base"},
	"facebook_m2m100_418m":         {name: "m2m100-418m", stored: bothEmbeddings, differs: "its head is stored, and config.json does not say that it is the embeddings"},
	"falcon_40b_instruct":          {name: "falcon-40b-instruct", stored: "lm_head.weight bf16 65024 8192\n", differs: "its head is stored, and config.json does not say that it is the embeddings"},
	"falcon_7b_instruct":           {name: "falcon-7b-instruct", stored: "lm_head.weight bf16 65024 4544\n", differs: "its head is stored, and config.json does not say that it is the embeddings"},
	"fusellm_7b":                   {name: "fusellm-7b", stored: invFreq},
	"gemma_2b_it":                  {name: "gemma-2b-it"},
	"internlm_chat_20b":            {name: "internlm-chat-20b"},
	"llama2.c":                     {name: "stories15m"},
	"llama2_13b_chat_hf":           {name: "llama2-13b-chat", stored: "model.layers.{0..40}.self_attn.rotary_emb.inv_freq f32 64\n"},
	"llama2_7b_chat.gguf":          {name: "llama2-7b-chat-gguf"},
	"llama2_7b_chat_hf":            {name: "llama2-7b-chat", stored: invFreq},
	"llama2_7b_hf":                 {name: "llama2-7b", stored: invFreq},
	"minicpm_2b_dpo_bf16":          {name: "minicpm-2b", differs: "residual factors 0.25 are near 1.4/√40; the head's factor stands in front of the norm"},
	"mistral_7b_instruct_v0.2":     {name: "mistral-7b-instruct-v0.2"},
	"mixtral_8x7b_instruct_v0.1":   {name: "mixtral-8x7b-instruct", differs: "softmax over all experts, renormalized, is the softmax over the chosen ones"},
	"open_llama_3b":                {name: "open-llama-3b"},
	"opt_13b":                      {name: "opt-13b", renamed: []string{"model.decoder.", "decoder.", "decoder.final_layer_norm", "decoder.layer_norm"}},
	"opt_350m":                     {name: "opt-350m", renamed: []string{"model.decoder.", "decoder."}},
	"opt_iml_max_30b":              {name: "opt-iml-max-30b", renamed: []string{"model.decoder.", "decoder."}},
	"orion_14b_chat":               {name: "orion-14b-chat"},
	"phi_2":                        {name: "phi-2"},
	"qwen1.5_0.5b_chat":            {name: "qwen1.5-0.5b-chat"},
	"qwen1.5_7b_chat":              {name: "qwen1.5-7b-chat"},
	"xverse_13b_chat":              {name: "xverse-13b-chat"},
	"yi_34b_chat":                  {name: "yi-34b-chat"},
	"yi_6b_200k":                   {name: "yi-6b-200k"},
}

const invFreq = "model.layers.{0..32}.self_attn.rotary_emb.inv_freq f32 64\n"

// TestInferflowModels lowers Inferflow's unchanged model specs at the real sizes
// of their models. It compares the modules with those of the library's model
// specs.
func TestInferflowModels(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(*inferflowSpecs, "*__*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", *inferflowSpecs, err)
	}
	for _, file := range files {
		folder, spec, _ := strings.Cut(filepath.Base(file), "__")
		t.Run(folder+"/"+spec, func(t *testing.T) {
			t.Parallel()
			m, c := inferflowModel(t, file)
			library, p := librarySpec(t, c.name)
			own := fakeModel(t, c.name, library, p.config, p.tensor)
			if d := cmp.Diff(unnamed(t, own), unnamed(t, m)); (d == "") != (c.differs == "") {
				t.Errorf("the library's module and this one (-library +inferflow); expected: %q\n%s", c.differs, d)
			}
		})
	}
}

// inferflowModel resolves a model spec of Inferflow at the real sizes of its model.
func inferflowModel(t *testing.T, file string) (*Model, inferflowCase) {
	t.Helper()
	folder, spec, _ := strings.Cut(filepath.Base(file), "__")
	c, ok := inferflowCases[folder]
	if !ok {
		t.Fatal("not in the table of models")
	}
	if spec == "model_spec_110m.json" {
		c.name = "stories110m"
	}
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, p := librarySpec(t, c.name)
	headers := strings.NewReplacer(c.renamed...).Replace(p.tensor) + c.stored
	return fakeModel(t, c.name, string(src), p.config, headers), c
}

// unnamed returns the canonical form of a model's module without the names of stored tensors.
func unnamed(t *testing.T, m *Model) string {
	t.Helper()
	return storedName.ReplaceAllString(canonical(t, m), `""`)
}

var storedName = regexp.MustCompile(`"[^"]*"`)

// inferflowNumbers are the model specs of families with a tiny model in testdata.
// Other specs state numbers of experts and vocabulary sizes that fit only their
// own models.
var inferflowNumbers = []struct {
	spec, model string
	renamed     []string // pairs: name in the tiny model's files, name in Inferflow's
}{
	{"llama2_7b_hf__model_spec.json", "llama", nil},
	{"llama2_13b_chat_hf__model_spec.json", "llama_llama3", nil},
	{"yi_6b_200k__model_spec.json", "llama_bias_linear", nil},
	{"mistral_7b_instruct_v0.2__model_spec.json", "mistral", nil},
	{"qwen1.5_7b_chat__model_spec.json", "qwen2", nil},
	{"gemma_2b_it__model_spec.json", "gemma", nil},
	{"phi_2__model_spec.safetensors.json", "phi", nil},
	{"bloomz_3b__model_spec.pickle.json", "bloom", []string{"transformer.", ""}},
	{"falcon_7b_instruct__model_spec.json", "falcon_7b", nil},
	{"falcon_40b_instruct__model_spec.json", "falcon_40b", nil},
	{"opt_13b__model_spec.json", "opt", []string{"model.decoder.final_layer_norm", "decoder.layer_norm", "model.decoder.", "decoder."}},
	{"opt_350m__model_spec.json", "opt_350m", []string{"model.decoder.", "decoder."}},
	{"facebook_m2m100_418m__model_spec.json", "m2m_100", nil},
	{"bert_base_multilingual_cased__model_spec.json", "bert_mlm", []string{"LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta"}},
}

// TestInferflowNumbers runs tiny models with Inferflow's unchanged model specs and
// compares the results with transformers.
func TestInferflowNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range inferflowNumbers {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(filepath.Join(*inferflowSpecs, c.spec))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join("testdata/families", c.model)
			config, err := readConfig(filepath.Join(dir, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(c.spec, src, config, Options{Quant: "f32"})
			if err != nil {
				t.Fatal(err)
			}
			set, err := checkpoint.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			h, names := &fakeHeaders{map[string]tensor.DType{}, map[string][]int{}}, map[string]string{}
			for _, x := range set.Tensors() {
				name := strings.NewReplacer(c.renamed...).Replace(x.Name)
				names[name], h.dtypes[name], h.shapes[name] = x.Name, x.DType, x.Shape
			}
			m, err := Resolve(s, h)
			if err != nil {
				t.Fatal(err)
			}
			mod, err := Lower(m)
			if err != nil {
				t.Fatal(err)
			}
			stored := storedTensors(set)
			r := &runner{t: t, mod: mod, states: interp.NewStates(), values: interp.NewWeights(mod, func(name string) (*tensor.Tensor, error) { return stored(names[name]) })}
			want := readExpected(t, dir)
			if mod.Graph("encode") == nil {
				r.decoder(want.IDs, want)
				return
			}
			r.encoder(want)
			if want.DecoderIDs != nil {
				r.decoder(want.DecoderIDs, want)
			}
		})
	}
}
