package spec

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

const graphSpec = `iflow: 1
name: g
hyper: {hidden_size: 4, num_hidden_layers: 2, num_attention_heads: 2, vocab_size: 6}
network_structure: {type: decoder_only}
graph: |
  weight @embed : $weight_type[$vocab_size, ${$hidden_size * 1}] from "embed"
  weight @w[$num_hidden_layers] : $weight_type[$hidden_size, $hidden_size] from "l.{i}.w"
  graph decode (T tokens, R out_rows) {
    input %ids : i32[T]
    input %out_rows : i32[R]
    %x0 = embed %ids, @embed
    %xn = repeat 0..$num_hidden_layers (%x = %x0) {
      %y = matmul %x, @w
      yield %y
    }
    %last = rows %xn, %out_rows
    %logits = matmul %last, @embed
    yield %logits
  }
`

// TestGraphsInDocs checks that the model spec excerpts of a page match the files.
func TestGraphsInDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/add-a-model.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```ir (\\S+)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("no pieces of model specs")
	}
	for _, b := range blocks {
		text, err := os.ReadFile("../" + b[1])
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for l := range strings.Lines(string(text)) {
			lines = append(lines, strings.TrimSpace(l))
		}
		if !strings.Contains(strings.Join(lines, "\n"), strings.TrimSpace(b[2])) {
			t.Errorf("%s does not have\n%s", b[1], b[2])
		}
	}
}

// TestGraph loads a model spec with a graph and checks the messages for invalid
// graphs.
func TestGraph(t *testing.T) {
	const headers = "embed f16 6 4\nl.{0..2}.w f16 4 4\n"
	for _, c := range []struct{ name, src, headers, want string }{
		{"good", graphSpec, headers, ""},
		{"parameter", strings.Replace(graphSpec, "$hidden_size, $hidden_size", "$hidden_size, $width", 1), headers, "spec.yaml:5:1: graph: $width: missing"},
		{"expression", strings.Replace(graphSpec, "$hidden_size * 1", "$hidden_size *", 1), headers, "spec.yaml:5:1: graph: ${$hidden_size *}"},
		{"syntax", strings.Replace(graphSpec, "matmul %x, @w", "matmul %x, @v", 1), headers, "spec.yaml:13:23: unknown weight @v"},
		{"large size", strings.Replace(graphSpec, "vocab_size: 6", "vocab_size: 1234567", 1), headers, ""},
		{"missing tensor", graphSpec, "embed f16 6 4\nl.{0..1}.w f16 4 4\n", `graph: weight @w: the files have no tensor "l.1.w"; did you mean "l.0.w"?`},
		{"unused tensor", graphSpec, headers + "l.0.b f16 4\n", `tensor "l.0.b": no module uses it; the model probably computes with it: declare a weight for it in graph:`},
	} {
		s, err := Parse("spec.yaml", []byte(c.src), nil, Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m, err := Resolve(s, parseHeaders(t, c.headers))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: have error %v, want %s", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		mod, err := Lower(m)
		if err != nil || len(mod.Weights) != 2 || mod.Weights[1].Type.String() != "f16[4, 4]" {
			t.Errorf("%s: %v, %v", c.name, err, mod)
		}
	}
}

// TestDeclaredFloats checks that quant leaves weights alone that a graph declares as f32, also
// if all weights are stored as f32.
func TestDeclaredFloats(t *testing.T) {
	t.Parallel()
	src := strings.Replace(graphSpec, "weight @w[$num_hidden_layers] : $weight_type", "weight @w[$num_hidden_layers] : f32", 1)
	for _, stored := range []string{"f16", "f32"} {
		s, err := Parse("spec.yaml", []byte(src), nil, Options{Quant: "q4"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Resolve(s, parseHeaders(t, "embed "+stored+" 6 4\nl.{0..2}.w "+stored+" 4 4\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Lower(m); err != nil {
			t.Fatal(err)
		}
		types, err := m.WeightTypes()
		if err != nil || len(types) != 1 || types[0] != (WeightType{"w", tensor.F32}) {
			t.Errorf("stored as %s: %v, %v; want w as f32", stored, types, err)
		}
	}
}
