package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckGraph: what no target can compute is check's error, at the line of
// the specification's graph; it needs no C compiler.
func TestCheckGraph(t *testing.T) {
	t.Parallel()
	good := "%h = matmul %x, @w\n    %y = rows %h, %out_rows"
	for _, c := range []struct{ name, body, want string }{
		{"good", good, ""},
		{"nested", "%z = repeat 0..2 (%a = %x) {\n    %b = repeat 0..2 (%c = %a) {\n    yield %c\n    }\n    yield %b\n    }\n    %y = rows %z, %out_rows",
			"spec.yaml:12:5: repeat: a repeat inside a repeat; unroll one of them"},
		{"twice", good + "\n    %z = rows %y, %out_rows", "spec.yaml:13:5: rows: %y counts out_rows"},
		{"unknown", "%y = nonsense %x", "spec.yaml:11:10: unknown op nonsense"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			last := c.body[strings.LastIndex(c.body, "\n")+1:]
			name, _, _ := strings.Cut(strings.TrimSpace(last), " ")
			for _, target := range []string{"cpu", "cuda"} {
				o := iflowc(t, "check", graphSpec(t, c.body+"\n    %logits = matmul "+name+", @e"), "--target", target)
				if c.want == "" {
					o.succeed(t)
					continue
				}
				wantError(t, o, exitUsage, c.want)
			}
		})
	}
}

// graphSpec is a specification with a graph, in which %x is an embedding and
// %logits what it yields, beside its tensors @e and @w.
func graphSpec(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	header, err := json.Marshal(map[string]any{
		"e": map[string]any{"dtype": "F32", "shape": []int{40, 32}, "data_offsets": []int{0, 5120}},
		"w": map[string]any{"dtype": "F32", "shape": []int{32, 32}, "data_offsets": []int{5120, 9216}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tensors := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), append(header, make([]byte, 9216)...)...)
	spec := "name: g\nhyper: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, vocab_size: 40, max_position_embeddings: 64}\n" +
		"network_structure: {type: decoder_only}\ngraph: |\n  weight @e : f32[40, 32] from \"e\"\n  weight @w : f32[32, 32] from \"w\"\n" +
		"  graph decode (T tokens, R out_rows) {\n    input %ids : i32[T]\n    input %out_rows : i32[R]\n    %x = embed %ids, @e\n    " + body + "\n    yield %logits\n  }\n"
	for name, data := range map[string][]byte{"model.safetensors": tensors, "spec.yaml": []byte(spec)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "spec.yaml")
}

// TestCheckAdapter checks that check counts the memory of adapters and finds those of
// other models.
func TestCheckAdapter(t *testing.T) {
	t.Parallel()
	const model, adapters = "../../spec/testdata/families/llama", "../../spec/testdata/lora/"
	var plain, with struct {
		Adapters int64 `json:"adapter_bytes"`
		Devices  []struct{ Bytes int64 }
	}
	for v, args := range map[any][]string{&plain: nil, &with: {"--lora", adapters + "llama/all", "--lora", adapters + "llama/wide"}} {
		o := iflowc(t, append([]string{"check", model, "--json"}, args...)...)
		o.succeed(t)
		if err := json.Unmarshal([]byte(o.stdout), v); err != nil {
			t.Fatal(err)
		}
	}
	if with.Adapters == 0 || plain.Adapters != 0 || with.Devices[0].Bytes != plain.Devices[0].Bytes+with.Adapters {
		t.Errorf("%+v without, %+v with adapters", plain, with)
	}
	wantError(t, iflowc(t, "check", model, "--lora", adapters+"gpt2/all"), exitUsage, "is the adapter for another model?")
	wantError(t, iflowc(t, "check", model, "--lora", "/none"), exitUsage, "--lora /none: stat /none")
}
