//go:build unix

package ptx

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// kernel wraps a body: %rd1 is the address of the memory, %r1 the thread.
func kernel(body string) string {
	return `.version 9.0
.target sm_80
.address_size 64
.visible .entry k(
	.param .u64 p
)
{
	.reg .pred %p<4>;
	.reg .f32 %f<9>;
	.reg .b32 %r<20>;
	.reg .b64 %rd<9>;
	.shared .align 16 .b8 sm[64];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
` + body + `
	ret;
}
`
}

// ran runs a body on 64 threads over 64 words of memory, whose word i holds i.
func ran(body string) ([]uint32, error) { return runWords(kernel(body), 64) }

// runWords runs a kernel on one block of threads over as many words of memory.
func runWords(text string, threads int) ([]uint32, error) {
	m, err := Parse(text)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 4*threads)
	for i := range threads {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(i))
	}
	d := &Driver{}
	d.add(data)
	d.Wrote(addressOf(data)) // by an earlier kernel
	err = m.Run("k", Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}, Early: strings.Contains(text, "griddepcontrol"), Args: [][]byte{binary.LittleEndian.AppendUint64(nil, addressOf(data))}}, d)
	out := make([]uint32, threads)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out, err
}

// TestOps: results by hand.
func TestOps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want func(i uint32) uint32
	}{
		"shuffle": {"ld.global.u32 %r2, [%rd3]; shfl.sync.bfly.b32 %r3|%p1, %r2, 1, 31, -1; st.global.u32 [%rd3], %r3;", func(i uint32) uint32 { return i ^ 1 }},
		"wait":    {"griddepcontrol.launch_dependents; griddepcontrol.wait; ld.global.u32 %r2, [%rd3]; add.u32 %r2, %r2, 1; st.global.u32 [%rd3], %r2;", func(i uint32) uint32 { return i + 1 }},
		"down": {"ld.global.u32 %r2, [%rd3]; shfl.sync.down.b32 %r3, %r2, 4, 31, -1; st.global.u32 [%rd3], %r3;", func(i uint32) uint32 {
			if i%32 >= 28 {
				return i
			}
			return i + 4
		}},
		"barrier": {`setp.lt.u32 %p1, %r1, 1; @%p1 st.shared.u32 [sm+8], 77; bar.sync 0; ld.shared.u32 %r2, [sm+8]; st.global.u32 [%rd3], %r2;`, func(uint32) uint32 { return 77 }},
		"float":   {"cvt.rn.f32.u32 %f1, %r1; fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000; cvt.rni.s32.f32 %r2, %f2; st.global.u32 [%rd3], %r2;", func(i uint32) uint32 { return 2*i + 1 }},
		"bytes":   {"prmt.b32 %r2, %r1, 258, 16656; st.global.u32 [%rd3], %r2;", func(i uint32) uint32 { return i | 2<<24 }},
		"signed": {"sub.s32 %r2, %r1, 32; shr.s32 %r3, %r2, 1; div.s32 %r4, %r2, 3; add.s32 %r5, %r3, %r4; st.global.u32 [%rd3], %r5;", func(i uint32) uint32 {
			v := int32(i) - 32
			return uint32(v>>1 + v/3)
		}},
		"dp4a":   {"mov.b32 %r2, 0x01FF0203; dp4a.u32.s32 %r3, %r2, 0xFF010203, %r1; st.global.u32 [%rd3], %r3;", func(i uint32) uint32 { return i + 3*3 + 2*2 + 255 - 1 }},
		"vote":   {"setp.lt.u32 %p1, %r1, 3; vote.sync.ballot.b32 %r2, %p1, -1; st.global.u32 [%rd3], %r2;", func(i uint32) uint32 { return map[bool]uint32{true: 7, false: 0}[i < 32] }},
		"carry":  {"add.cc.u32 %r2, %r1, -1; addc.u32 %r3, 5, 0; st.global.u32 [%rd3], %r3;", func(i uint32) uint32 { return 5 + map[bool]uint32{true: 1, false: 0}[i > 0] }},
		"atomic": {"atom.global.add.u32 %r2, [%rd1], 2; bar.sync 0; ld.global.u32 %r3, [%rd1]; bar.sync 0; st.global.u32 [%rd3], %r3;", func(uint32) uint32 { return 128 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ran(c.body)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if want := c.want(uint32(i)); v != want {
					t.Fatalf("thread %d: %#x, want %#x", i, v, want)
				}
			}
		})
	}
}

// TestFaults: what a GPU would do in silence is an error that says where.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"out of bounds":     {"st.global.u32 [%rd3+256], %r1;", "no memory of the device"},
		"shared bounds":     {"st.shared.u32 [sm+64], %r1;", "of shared memory, which has 64"},
		"alignment":         {"ld.global.u32 %r2, [%rd1+2];", "not aligned"},
		"early load":        {"ld.global.u32 %r2, [%rd3]; griddepcontrol.wait;", "accessed before griddepcontrol.wait"},
		"early store":       {"griddepcontrol.launch_dependents; st.global.u32 [%rd3], %r1; griddepcontrol.wait;", "before griddepcontrol.wait"},
		"early atomic":      {"atom.global.add.u32 %r2, [%rd3], 1; griddepcontrol.wait;", "written before griddepcontrol.wait"},
		"divergent barrier": {"setp.lt.u32 %p1, %r1, 5; @%p1 bra $L; bar.sync 0; $L: bar.sync 1;", "wait for ever"},
		"divergent shuffle": {"setp.lt.u32 %p1, %r1, 5; @%p1 bra $L; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; $L: bar.sync 0;", "wait for ever"},
		"own mask":          {"shfl.sync.idx.b32 %r3, %r1, 0, 31, 1;", "not in its own mask"},
		"endless":           {"$L: bra $L;", "without waiting"},
		"unknown":           {"frobnicate.u32 %r2, %r1;", "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := ran(c.body); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, expected …%s…", err, c.want)
			}
		})
	}
}

// TestUninitialized: shared memory that nobody wrote is not a number.
func TestUninitialized(t *testing.T) {
	t.Parallel()
	got, err := ran("ld.shared.f32 %f1, [sm]; st.global.f32 [%rd3], %f1;")
	if err != nil || !math.IsNaN(float64(math.Float32frombits(got[0]))) {
		t.Errorf("%v, %v", got[0], err)
	}
}

// TestHalf: every 16-bit float goes to a number and back to itself.
func TestHalf(t *testing.T) {
	t.Parallel()
	for v := range 1 << 16 {
		for _, typ := range []string{"f16", "bf16"} {
			x := float(typ, uint64(v))
			if back := fbits(typ, x); x == x && back != uint64(v) {
				t.Fatalf("%s %#x is %v and then %#x", typ, v, x, back)
			}
		}
	}
}

// TestCalls: every call has the arguments of its own, although their names are the same.
func TestCalls(t *testing.T) {
	call := func(add string) string {
		return `{
	.param .b64 param0;
	st.param.b64 [param0+0], %rd3;
	.param .b32 param1;
	st.param.b32 [param1+0], ` + add + `;
	call.uni
	add,
	(
	param0,
	param1
	);
	}
`
	}
	text := strings.Replace(kernel(call("100")+call("1000")), ".visible", `.func add(
	.param .b64 add_param_0,
	.param .b32 add_param_1
)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [add_param_0];
	ld.param.u32 %r1, [add_param_1];
	ld.u32 %r2, [%rd1];
	add.s32 %r3, %r2, %r1;
	st.u32 [%rd1], %r3;
	ret;
}
.visible`, 1)
	out, err := runWords(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range out {
		if v != uint32(i)+1100 {
			t.Errorf("word %d is %d, want %d", i, v, i+1100)
		}
	}
}
