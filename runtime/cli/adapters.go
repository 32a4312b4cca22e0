//go:build unix

package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// A loraFile is an adapter of --lora.
type loraFile struct {
	name, path string
	file       *lora.Adapter // open until it is loaded
	bytes      int64         // memory of its matrices
	loaded     *engine.Adapter
}

// openAdapter opens an adapter's files. The error says why they do not fit the model.
func (m *model) openAdapter(path string) (*lora.Adapter, int64, error) {
	a, err := lora.Open(path)
	if err != nil {
		return nil, 0, err
	}
	bytes, err := m.bin.AdapterBytes(a)
	if err != nil {
		a.Close()
		return nil, 0, err
	}
	return a, bytes, nil
}

// openAdapters opens the adapters of --lora; taken are names that they cannot have.
func (m *model) openAdapters(f *engineFlags, taken []string) error {
	if m.adapters != nil {
		return nil
	}
	taken = append(taken, "none") // of chat: no adapter
	for _, text := range f.LoRA {
		a := &loraFile{path: text}
		if name, path, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(name, `/\`) {
			a.name, a.path = name, path
		} else {
			a.name = strings.TrimSuffix(filepath.Base(text), ".gguf")
		}
		if err := server.CheckAdapterName(a.name, taken); err != nil {
			return wrong(fmt.Errorf("--lora %s: %w; write NAME=PATH", text, err))
		}
		taken = append(taken, a.name)
		var err error
		if a.file, a.bytes, err = m.openAdapter(a.path); err != nil {
			return wrong(fmt.Errorf("--lora %s: %w", text, err))
		}
		m.adapters = append(m.adapters, a)
	}
	return nil
}

// adapterInfo is an adapter in the output of info.
type adapterInfo struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Rank     int    `json:"rank"`     // the highest of its matrices
	Matrices int    `json:"matrices"` // matrices of the model that it changes
	Bytes    int64  `json:"bytes"`    // memory
}

// describeAdapters describes the adapters of --lora, which fit the model.
func (m *model) describeAdapters(f *engineFlags) (list []adapterInfo, err error) {
	if err := m.openAdapters(f, nil); err != nil {
		return nil, err
	}
	for _, a := range m.adapters {
		list = append(list, adapterInfo{a.name, a.path, a.file.Rank(), len(a.file.Matrices()), a.bytes})
	}
	return list, nil
}

// adapterBytes returns the memory of the adapters of --lora.
func (m *model) adapterBytes() (n int64) {
	for _, a := range m.adapters {
		n += a.bytes
	}
	return n
}

// loadAdapters loads the adapters of --lora and lets queries use the first one.
func (m *model) loadAdapters(eng *engine.Engine) error {
	for _, a := range m.adapters {
		packed, err := eng.PackAdapter(a.file, a.bytes)
		if err == nil {
			a.loaded, err = eng.LoadAdapter(packed, a.bytes)
		}
		if err != nil {
			return wrong(fmt.Errorf("--lora %s: %w", a.path, err))
		}
		a.file.Close()
		a.file = nil
	}
	if len(m.adapters) > 0 {
		eng.UseAdapter(m.adapters[0].loaded)
	}
	return nil
}

// useAdapter lets queries use the adapter with a name; "none": none. It returns an error
// that lists the names.
func (m *model) useAdapter(name string) error {
	names := []string{"none"}
	for _, a := range m.adapters {
		if a.name == name {
			m.eng.UseAdapter(a.loaded)
			return nil
		}
		names = append(names, a.name)
	}
	if name == "none" {
		m.eng.UseAdapter(nil)
		return nil
	}
	if len(m.adapters) == 0 {
		return errors.New("there are no adapters; start the chat with --lora NAME=PATH")
	}
	return fmt.Errorf("no adapter has this name; choose one of %s", strings.Join(names, ", "))
}
