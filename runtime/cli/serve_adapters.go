//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/kit/bytesize"
)

// loraFlags control the LoRA adapters of a service.
type loraFlags struct {
	AdapterDir    string         `name:"lora-dir" placeholder:"DIR" type:"path" help:"Folder from which keys with operator: true may load LoRA adapters (/v1/load_lora_adapter)."`
	AdapterMemory *bytesize.Size `name:"lora-memory" placeholder:"SIZE" help:"Memory for LoRA adapters (default: that of --lora, and 256 MiB with --lora-dir)."`
}

// roomToLoad is the default memory for adapters that are loaded at run time. An adapter of
// rank 16 for all linear layers of a model with 8 billion parameters takes 168 MB.
const roomToLoad = 256 << 20

// adapters opens the adapters of --lora and sets the default of --lora-memory.
func (c *serveCmd) adapters(m *model) error {
	m.several = true
	if err := m.openAdapters(&c.engineFlags, append([]string{"default", m.manifest.Name, c.name()}, c.Alias...)); err != nil {
		return err
	}
	least := m.adapterBytes()
	if c.AdapterDir != "" {
		if c.Keys == "" {
			return wrong(errors.New("--lora-dir: only keys with operator: true may load adapters; define one in the file of --keys"))
		}
		if info, err := os.Stat(c.AdapterDir); err != nil || !info.IsDir() {
			return wrong(fmt.Errorf("--lora-dir %s: expected a folder", c.AdapterDir))
		}
	}
	if c.AdapterMemory == nil {
		n := bytesize.Size(least)
		if c.AdapterDir != "" {
			n += roomToLoad
		}
		c.AdapterMemory = &n
	}
	if int64(*c.AdapterMemory) < least || *c.AdapterMemory > maxAdapterMemory {
		return wrong(fmt.Errorf("--lora-memory %d: expected a number from %d, the size of the adapters of --lora, to %d", *c.AdapterMemory, least, int64(maxAdapterMemory)))
	}
	return nil
}

// maxAdapterMemory bounds --lora-memory, so that sums of sizes do not overflow.
const maxAdapterMemory = 1 << 50

// loaded returns the server's options for adapters. Queries without one use none.
func (c *serveCmd) loaded(m *model, s *scheduler.Scheduler) server.AdapterOptions {
	opt := server.AdapterOptions{Dir: c.AdapterDir, Open: m.openAdapter}
	for _, a := range m.adapters {
		opt.Loaded = append(opt.Loaded, &server.Adapter{Name: a.name, Path: a.path, Bytes: a.bytes, Adapter: s.Adapter(a.loaded)})
	}
	return opt
}
