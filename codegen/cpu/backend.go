package cpu

import (
	"fmt"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// The emitter is the ctext.Backend of row ops on the CPU: each thread computes whole
// rows with vectors of 16 floats.

// Vector implements ctext.Backend, as the methods below do.
func (e *emitter) Vector() string { return "ifl_v16" }

func (e *emitter) Loop(width string) string {
	return fmt.Sprintf("for (int j = 0; j < %s; j += 16) {", width)
}

func (e *emitter) Load(address string) string { return "ifl_load(" + address + ")" }

func (e *emitter) Store(address, value string) string {
	return fmt.Sprintf("ifl_store(%s, %s);", address, value)
}

func (e *emitter) Copy(to, from string, n int) string {
	return fmt.Sprintf("memcpy(%s, %s, %d * sizeof(float));", to, from, n)
}

func (e *emitter) Interleaved(part string, parts int) string {
	return fmt.Sprintf("%s + %d * j", part, parts)
}

func (e *emitter) Sync(*ctext.Writer) {}

func (e *emitter) Weights(*layout.Weight) string { return "c->weights" }

func (e *emitter) State(offset string) string {
	if offset == "0" {
		return "c->state"
	}
	return "c->state + " + offset + " * c->pages"
}

func (e *emitter) Cells(offset string) string {
	if offset == "0" {
		return "c->cell"
	}
	return "c->cell + " + offset + " * c->cells"
}

func (e *emitter) Part(rank int, _ *ir.Value) string {
	return fmt.Sprintf("(const float *)c->parts[%d]", rank)
}

func (e *emitter) Embed(table tensor.DType) (string, error) {
	k, err := e.only("embed", table)
	if err != nil {
		return "", err
	}
	return e.use(k, table, "void %s(const uint8_t *w, int k, int row, float *out);") + "(", nil
}

func (e *emitter) Prefetches() bool { return true }
