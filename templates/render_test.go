package templates

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRender(t *testing.T) {
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("RENDER")
	for _, k := range c.Kernels() {
		for _, dt := range k.Types {
			for _, isa := range ISAs() {
				s, err := k.Source(dt, isa.Name)
				if err != nil {
					t.Fatal(err)
				}
				if dir != "" {
					os.MkdirAll(filepath.Join(dir, isa.Name), 0o777)
					os.WriteFile(filepath.Join(dir, isa.Name, k.Symbol(dt)+".c"), []byte(s), 0o666)
				}
			}
		}
	}
}
