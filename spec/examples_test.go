package spec

import (
	"os"
	"strings"
	"testing"
)

// annalogHeaders are the tensor headers of the published file (script/fetch-annalog).
func annalogHeaders() string {
	var b strings.Builder
	matrix := func(name string, rows, cols string) {
		b.WriteString(name + ".weight f32 " + rows + " " + cols + "\n" + name + ".bias f32 " + rows + "\n")
	}
	for _, side := range []string{"encoder", "decoder"} {
		b.WriteString(side + ".tok_embedding.weight f32 59 256\n" + side + ".pos_embedding.weight f32 102 256\n")
		layer := side + ".layers.{0..3}."
		attentions, norms := []string{"self_attention"}, []string{"self_attn_layer_norm", "ff_layer_norm"}
		if side == "decoder" {
			attentions, norms = append(attentions, "encoder_attention"), append(norms, "enc_attn_layer_norm")
		}
		for _, a := range attentions {
			for _, p := range []string{".fc_q", ".fc_k", ".fc_v", ".fc_o"} {
				matrix(layer+a+p, "256", "256")
			}
		}
		for _, n := range norms {
			b.WriteString(layer + n + ".weight f32 256\n" + layer + n + ".bias f32 256\n")
		}
		matrix(layer+"positionwise_feedforward.fc_1", "512", "256")
		matrix(layer+"positionwise_feedforward.fc_2", "256", "512")
	}
	matrix("decoder.fc_out", "59", "256")
	return b.String()
}

// TestExample checks that the example's model spec matches the published file: all
// its tensors are used, and the module is valid.
func TestExample(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../docs/examples/annalog/annalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := fakeSpec(t, "annalog", string(src), "", Options{Quant: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Resolve(s, parseHeaders(t, annalogHeaders()))
	if err != nil {
		t.Fatal(err)
	}
	checkParameters(t, m, "4051259 (the published file)")
	if text := loweredModel(t, m); strings.Count(text, "layernorm") != 5 {
		t.Errorf("want 2 norms in an encoder's layer and 3 in a decoder's, none besides:\n%s", text)
	}
}
