//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/cli"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"github.com/iflowc/iflowc/spec/tokenizerfile"
)

// A binary is a fake per-model binary: what it embeds, and where it lies.
type fakeBinary struct {
	cli.Embedded
	manifest *manifest.Manifest
	program  string
	salt     byte
	tok      *tokenizer.Tokenizer
}

// newBinary makes the fake model a binary with weights beside it.
func newBinary(t *testing.T, edit func(*manifest.Manifest)) *fakeBinary {
	t.Helper()
	b := &fakeBinary{manifest: devicetest.Manifest(), program: filepath.Join(t.TempDir(), "fake")}
	b.manifest.AddBOS = true
	b.salt = writeWeights(t, b.program+".weights", b.manifest)
	b.hold(t, fakeTokenizer(t))
	if edit != nil {
		edit(b.manifest)
	}
	said, err := json.Marshal(b.manifest)
	if err != nil {
		t.Fatal(err)
	}
	b.Manifest = string(said)
	lib, err := os.ReadFile(devicetest.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	b.Libs = map[string]string{"lib-portable.so": string(lib)}
	b.IR, b.Spec = "module fake {\n}\n", "name: fake\n"
	if err := os.WriteFile(b.program, []byte("#!program"), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a command line in this process.
func (b *fakeBinary) run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(ctx, b.Embedded, cli.Process{
		Args: args, Program: b.program, Start: time.Now(),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// must runs a command line that succeeds and decodes its JSON.
func (b *fakeBinary) must(t *testing.T, v any, args ...string) {
	t.Helper()
	code, stdout, stderr := b.run(t.Context(), args...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), v); err != nil {
		t.Fatalf("%v: %v in %q", args, err, stdout)
	}
}

// writeWeights packs one 16×16 tensor, updates the manifest's description and
// returns the data's first byte.
func writeWeights(t *testing.T, path string, m *manifest.Manifest) byte {
	t.Helper()
	head := []byte(`{"w":{"dtype":"F32","shape":[16,16],"data_offsets":[0,1024]}}`)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)
	for i := range 256 {
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(i)+0.1))
	}
	source := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(source, file, 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := checkpoint.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	items := []pack.Item{{Name: "w", Transform: tensor.Source("w"), DType: tensor.F32, Rows: 16, Cols: 16, Layout: packed.LayoutPanel16}}
	if err := pack.Pack(t.Context(), pack.Source{Set: set}, items, path, pack.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := packed.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m.Weights = nil
	for _, it := range p.Items() {
		m.Weights = append(m.Weights, manifest.Weight{
			Name: it.Name, Index: it.Index, DType: it.DType, Rows: it.Rows, Cols: it.Cols, Layout: it.Layout, Offset: it.Offset, Bytes: it.Bytes,
		})
	}
	data, err := p.Load(true)
	if err != nil {
		t.Fatal(err)
	}
	return data[0]
}

// withMask makes "." the mask token of the binary's tokenizer.
func (b *fakeBinary) withMask(t *testing.T) {
	t.Helper()
	b.hold(t, newTokenizer(t, tokenizerfile.Files{"tokenizer_config.json": []byte(`{"mask_token":"."}`)}))
}

// hold embeds a tokenizer.
func (b *fakeBinary) hold(t *testing.T, tok *tokenizer.Tokenizer) {
	t.Helper()
	data, err := tok.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	b.tok, b.Tokenizer = tok, string(data)
}

func fakeTokenizer(t *testing.T) *tokenizer.Tokenizer { return newTokenizer(t, tokenizerfile.Files{}) }

// newTokenizer has one token a letter, and what else the files say.
func newTokenizer(t *testing.T, files tokenizerfile.Files) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "</s>": 2, "Ġ": 3, ".": 4}
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for i, r := range letters {
		vocab[string(r)] = 5 + i
	}
	for i := 5 + len(letters); i < devicetest.Vocab; i++ {
		vocab[fmt.Sprint(i-5-len(letters))] = i
	}
	v, err := json.Marshal(vocab)
	if err != nil {
		t.Fatal(err)
	}
	text := `{"version":"1.0","added_tokens":[{"id":1,"content":"<s>","special":true,"normalized":false},{"id":2,"content":"</s>","special":true,"normalized":false}],
"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"post_processor":null,
"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","unk_token":"<unk>","vocab":` + string(v) + `,"merges":[]}}`
	files["tokenizer.json"] = []byte(text)
	tok, err := tokenizerfile.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
