package lora

import (
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

const plainConfig = `{"peft_type":"LORA","r":2,"lora_alpha":4}`

// folder writes a PEFT folder.
func folder(t testing.TB, config string, fixtures ...checkpointtest.Fixture) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, peftConfigFile), []byte(config))
	write(t, filepath.Join(dir, peftWeights), checkpointtest.Safetensors(fixtures...))
	return dir
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// matrix returns a fixture of small numbers, by name and position.
func matrix(name string, dt tensor.DType, rows, cols int) checkpointtest.Fixture {
	f := checkpointtest.New(name, dt, []int{rows, cols}, nil)
	for i := range rows * cols {
		v := float32((i*7+len(name))%13-6) / 4
		switch dt {
		case tensor.F32:
			f.Raw = binary.LittleEndian.AppendUint32(f.Raw, math.Float32bits(v))
		case tensor.F64:
			f.Raw = binary.LittleEndian.AppendUint64(f.Raw, math.Float64bits(float64(v)))
		case tensor.F16:
			f.Raw = binary.LittleEndian.AppendUint16(f.Raw, tensor.F32ToF16(v))
		case tensor.BF16:
			f.Raw = binary.LittleEndian.AppendUint16(f.Raw, tensor.F32ToBF16(v))
		}
	}
	return f
}

// peft returns the pair of a matrix in PEFT's names.
func peft(name string, rank, in, out int) []checkpointtest.Fixture {
	prefix := "base_model.model." + name
	return []checkpointtest.Fixture{matrix(prefix+".lora_A.weight", tensor.F32, rank, in), matrix(prefix+".lora_B.weight", tensor.F32, out, rank)}
}

func text(key, value string) checkpointtest.GGUFPair {
	return checkpointtest.Pair(key, 8, checkpointtest.GGUFText(value))
}

func alpha(v float32) checkpointtest.GGUFPair {
	return checkpointtest.Pair("adapter.lora.alpha", 6, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

// ggufFile writes a GGUF adapter with alpha 4.
func ggufFile(t testing.TB, fixtures ...checkpointtest.Fixture) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "adapter.gguf")
	write(t, path, checkpointtest.GGUF([]checkpointtest.GGUFPair{text("general.type", "adapter"), text("adapter.type", "lora"), alpha(4)}, fixtures...))
	return path
}

func open(t testing.TB, path string) *Adapter {
	t.Helper()
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// wantErrors opens each adapter and checks its error.
func wantErrors(t *testing.T, paths map[string]string) {
	t.Helper()
	for _, want := range slices.Sorted(maps.Keys(paths)) {
		a, err := Open(paths[want])
		if err == nil {
			a.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), paths[want]) && !strings.HasPrefix(err.Error(), "stat "+paths[want]) {
			t.Errorf("error %v, want %s: …%s…", err, paths[want], want)
		}
	}
}
