package codegen

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A spelling is how the text of row ops differs between targets: the CPU's
// threads each do whole rows with vectors of 16, a GPU's share a row.
type spelling struct {
	vector  string // type of what an expression computes at once
	loop    string // a loop over the columns of a slice; its variable is j
	load    string // what stands at an address
	store   string // writes a value to an address
	copy    string // copies floats: to, from, count
	strided string // address at j of a slice whose vectors of 16 lie apart by a factor
	state   string // address at an offset in the state
	part    string // address of what a member of the tensor group said in the last exchange
	ahead   bool   // lines that a later row writes are asked for

	sync  func(w *cWriter)                                        // ends an op, so that what follows sees its results
	table func(w *cWriter, body string) string                    // an array of constants, for an element of it
	embed func(g *cpuGen, dt tensor.DType) (call string, e error) // looks a row up: address, columns, row, target
}

var cSpelling = spelling{
	vector:  "ifl_v16",
	loop:    "for (int j = 0; j < %s; j += 16) {",
	load:    "ifl_load(%s)",
	store:   "ifl_store(%s, %s);",
	copy:    "memcpy(%s, %s, %d * sizeof(float));",
	strided: "%s + %d * j",
	state:   "c->state + %s * c->pages",
	part:    "(const float *)c->parts[%d]",
	ahead:   true,
	sync:    func(*cWriter) {},
	table:   func(_ *cWriter, body string) string { return "((const float[])" + body + ")" },
	embed: func(g *cpuGen, dt tensor.DType) (string, error) {
		k, err := g.only("embed", dt)
		if err != nil {
			return "", err
		}
		return g.use(k, dt, "void %s(const uint8_t *w, int k, int row, float *out);") + "(%s, %d, %s, %s);", nil
	},
}

// cudaSpelling is for kernels in whose scope g is a group of threads.
var cudaSpelling = spelling{
	vector:  "float",
	loop:    "for (int j = g.lane; j < %s; j += g.lanes) {",
	load:    "*(%s)",
	store:   "*(%s) = %s;",
	copy:    "ifl_row_copy(%s, %s, %d);",
	strided: "%s + (j / 16 * (16 * %d) + j %% 16)",
	state:   "ifl_state(c, %s * c->pages)",
	part:    "reinterpret_cast<const float *>(c->parts + %d * c->part_bytes)",
	sync:    func(w *cWriter) { w.p("g.sync();") },
	table: func(w *cWriter, body string) string {
		name := fmt.Sprintf("table_%d", w.b.Len())
		w.p("static const float %s[] = %s;", name, body)
		return name
	},
	embed: func(_ *cpuGen, dt tensor.DType) (string, error) {
		if dt.IsBlock() {
			return "ifl_embed_block<ifl_format_" + dt.String() + ">(g, %s, %d, %s, %s);", nil
		}
		return "ifl_embed_float<ifl_element_" + dt.String() + ">(g, %s, %d, %s, %s);", nil
	},
}
