// Package demotest makes variants of the demo model for tests of packages two folders below
// the module's root.
package demotest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// Layers is the number of layers of Short.
const Layers = 2

// Short returns a spec of the demo model's first layers: what they say is no story, but
// an emulated GPU and a calibration need a third of the time.
func Short(t testing.TB) string {
	t.Helper()
	spec, err := written()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// written writes it into the cache, by its content: what is compiled depends on
// the model's path, and the next run of the tests has it too.
var written = sync.OnceValues(func() (string, error) {
	files, err := shortFiles()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, name, string(files[name]))
	}
	cache, err := toolchain.Dir("")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "test", toolchain.Key(parts...)[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if regular.Has(path) {
			continue // its time is part of what is cached
		}
		if err := toolchain.WriteFile(path, data, 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "demo.yaml"), nil
})

// shortFiles returns the files of Short by their names.
func shortFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	const from = "../../models/demo"
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(from, e.Name())); err != nil {
			return nil, err
		}
	}
	if files["model.safetensors"], err = firstLayers(files["model.safetensors"]); err != nil {
		return nil, err
	}
	layers := regexp.MustCompile(`"num_hidden_layers": \d+`)
	files["config.json"] = layers.ReplaceAll(files["config.json"], fmt.Appendf(nil, `"num_hidden_layers": %d`, Layers))
	text, err := os.ReadFile("../../models/demo.yaml")
	if err != nil {
		return nil, err
	}
	files["demo.yaml"] = bytes.Replace(text, []byte("model_dir: demo\n"), []byte("model_dir: .\n"), 1)
	return files, nil
}

// firstLayers returns a safetensors file without the layers from Layers on.
func firstLayers(file []byte) ([]byte, error) {
	return EditTensors(file, func(name string, h *StoredTensor, data []byte) []byte {
		layer := -1
		if rest, ok := strings.CutPrefix(name, "model.layers."); ok {
			if _, err := fmt.Sscan(rest[:strings.Index(rest, ".")], &layer); err != nil {
				return nil
			}
		}
		if layer >= Layers {
			return nil
		}
		return data
	})
}

// A StoredTensor is what a safetensors file says of a tensor.
type StoredTensor struct {
	Type    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// EditTensors returns a safetensors file with the data that edit gives for each tensor,
// whose header it may change; nil leaves the tensor out.
func EditTensors(file []byte, edit func(name string, h *StoredTensor, data []byte) []byte) ([]byte, error) {
	size := binary.LittleEndian.Uint64(file)
	var head map[string]*StoredTensor
	if err := json.Unmarshal(file[8:8+size], &head); err != nil {
		return nil, err
	}
	delete(head, "__metadata__")
	data := file[8+size:]
	var kept []byte
	for _, name := range slices.Sorted(maps.Keys(head)) { // the same file in every run
		h := head[name]
		part := edit(name, h, data[h.Offsets[0]:h.Offsets[1]])
		if part == nil {
			delete(head, name)
			continue
		}
		h.Offsets = [2]int{len(kept), len(kept) + len(part)}
		kept = append(kept, part...)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), kept...), nil
}
