package compiler

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// quantizedLlama writes a small Llama whose matrices are stored in a type, with an
// embedding in another, and returns its model spec with more keys.
func quantizedLlama(t *testing.T, matrices, embedding tensor.DType, keys string) string {
	t.Helper()
	const width, hidden, vocab = 256, 512, 300
	store := func(name string, dt tensor.DType, rows, cols int) checkpointtest.Fixture {
		if dt.IsFloat() {
			return checkpointtest.Ramp(name, 1, rows, cols)
		}
		return checkpointtest.Quantized(name, dt, rows, cols)
	}
	fixtures := []checkpointtest.Fixture{store("token_embd.weight", embedding, vocab, width), checkpointtest.Ramp("output_norm.weight", 1, width)}
	for name, size := range map[string][2]int{"attn_q": {width, width}, "attn_k": {width, width}, "attn_v": {width, width}, "attn_output": {width, width},
		"ffn_gate": {hidden, width}, "ffn_up": {hidden, width}, "ffn_down": {width, hidden}} {
		fixtures = append(fixtures, store("blk.0."+name+".weight", matrices, size[0], size[1]))
	}
	for _, name := range []string{"attn_norm", "ffn_norm"} {
		fixtures = append(fixtures, checkpointtest.Ramp("blk.0."+name+".weight", 1, width))
	}
	meta := []checkpointtest.GGUFPair{checkpointtest.Pair("general.architecture", 8, checkpointtest.GGUFText("llama"))}
	for key, n := range map[string]uint32{"vocab_size": vocab, "embedding_length": width, "feed_forward_length": hidden, "block_count": 1, "attention.head_count": 4, "context_length": 64} {
		meta = append(meta, checkpointtest.Pair("llama."+key, 4, binary.LittleEndian.AppendUint32(nil, n)))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.gguf"), checkpointtest.GGUF(meta, fixtures...), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "iflow: 1\nname: tiny\nmodel_files: [model.gguf]\nmodel_file_format: gguf\nnetwork_structure: {type: decoder_only, normalization_function: rms, activation_function: silu, position_embedding: rope}\n" + keys + "\n"
	path := filepath.Join(dir, "tiny.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestJudgeTypes: types that round quantized weights again, make them larger or lose much
// are named, with what is better; others are not.
func TestJudgeTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		matrices, embedding tensor.DType
		quant, keys         string
		want                string // parts of the notes, by "|"; "": none
	}{
		{tensor.GQ4_1, tensor.GQ8_0, "", "", ""},
		{tensor.GQ4_1, tensor.GQ8_0, "q8", "", "stored as q4_1|--quant q8 makes them larger|rounds 90 % of them a second time|omit it to keep them|choose a smaller size: q4"},
		{tensor.GQ4_1, tensor.GQ8_0, "q6", "", "makes them larger|further from the original"},
		{tensor.GQ4_1, tensor.GQ4_1, "q5", "", "makes them larger"},
		{tensor.GQ4_1, tensor.GQ8_0, "q4", "", "rounds 100 % of them a second time|in f16 or bf16"},
		{tensor.GQ4_1, tensor.GQ8_0, "q2", "", "a second time|q2 multiplied the perplexity of SmolLM2-135M by 6.5"},
		{tensor.GQ8_0, tensor.GQ8_0, "q8", "", ""},
		{tensor.GQ8_0, tensor.GQ8_0, "f16", "", "makes them larger|is not more accurate|q6 "},
		{tensor.GQ8_0, tensor.GQ8_0, "f32", "", "is not more accurate"},
		{tensor.GQ4_0, tensor.GQ4_0, "q8", "", "makes them larger|is not more accurate"}, // exact
		{tensor.GQ4K, tensor.GQ6K, "q6", "", "makes them larger"},
		{tensor.GTQ2, tensor.F32, "q2_b32", "", ""}, // exact
		{tensor.F32, tensor.F32, "q8", "", ""},
		{tensor.F32, tensor.F32, "q4", "", ""},
		{tensor.F32, tensor.F32, "q3", "", "q3 increased the perplexity of SmolLM2-135M by 45 %|q4 cost 12 %"},
		{tensor.F32, tensor.F32, "q2_b32", "", "q2_b32 loses more"},
		{tensor.GQ4_1, tensor.GQ8_0, "", "quant: q8", "quant: q8_b32t2 of the model spec makes them larger"},
		{tensor.GQ4_1, tensor.GQ8_0, "", "types: {w_gate: q8}", "types: of the model spec makes them larger"},
		{tensor.GQ4_1, tensor.GQ8_0, "", "types: {embed: q6}", "types: of the model spec hardly makes them smaller"},
	} {
		name := strings.TrimSpace(c.matrices.String() + " " + c.quant + c.keys)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			p, err := openProgram(t.Context(), quantizedLlama(t, c.matrices, c.embedding, c.keys), Options{Quant: c.quant, Notice: func(line string) { said = append(said, line) }})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			said = slices.DeleteFunc(said, func(line string) bool { return strings.Contains(line, "has no tokenizer") })
			text := strings.Join(said, "\n")
			for _, part := range strings.Split(c.want, "|") {
				if !strings.Contains(text, part) || c.want == "" && len(p.warnings) > 0 {
					t.Errorf("%q is not in %q", part, text)
				}
			}
			if strings.Join(p.warnings, "\n") != text {
				t.Errorf("warnings %q, notes %q", p.warnings, said)
			}
		})
	}
}

// TestLosses: the losses are those of the sizes, in their order, and
// docs/quantization.md shows them.
func TestLosses(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/quantization.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range losses().Sizes {
		if i >= len(dtype.Sizes) || l.Quant != dtype.Sizes[i].Name || l.Bits != dtype.Sizes[i].Type.Bits() {
			t.Errorf("%s with %v bits is not size %d of dtype.Sizes", l.Quant, l.Bits, i)
		}
		row := fmt.Sprintf("| `%s` | %g | %d MB | %g | %s |", l.Quant, l.Bits, l.Megabytes, l.Speed, l.text())
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/quantization.md has no row %s", row)
		}
	}
	if !strings.Contains(string(page), "| "+losses().Model+" |") {
		t.Errorf("docs/quantization.md does not name %s", losses().Model)
	}
}
