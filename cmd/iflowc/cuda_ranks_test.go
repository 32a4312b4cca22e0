package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmulatedRanks: layers on the processor and others on a GPU, members of a
// tensor group on several GPUs, and keys, values and the table of tokens in the
// host's memory give the CPU target's tokens.
func TestEmulatedRanks(t *testing.T) {
	t.Parallel()
	needEmulation(t)
	story := []string{"generate", "-p", "Once upon a time", "-n", "12", "--temp", "0", "--threads", "2"}
	want := call(t, nil, demo(t), story...).succeed(t)
	source, err := os.ReadFile("../../models/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs("../../models/demo")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ engine, devices string }{
		"cpu;0":      {devices: "cpu;0"},
		"0;cpu":      {devices: "0;cpu", engine: "host_kv_cache_percent: 100"},
		"0&1":        {devices: "0&1"},
		"two layers": {engine: "decoder_cpu_layer_count: 2"},
		"host":       {engine: "host_kv_cache_percent: 50, be_host_embeddings: true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(string(source), "model_dir: demo\n", fmt.Sprintf("model_dir: %s\nengine: {%s}\n", folder, c.engine), 1)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "demo.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			bin := filepath.Join(dir, "demo")
			args := []string{"compile", filepath.Join(dir, "demo.yaml"), "--target", "cuda-emu", "-o", bin}
			if c.devices != "" {
				args = append(args, "--devices", c.devices)
			}
			iflowc(t, args...).succeed(t)
			if got := call(t, nil, bin, story...).succeed(t); got != want {
				t.Errorf("%q, expected %q", got, want)
			}
		})
	}
}
