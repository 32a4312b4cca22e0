//go:build unix

package ptx

import (
	"math"
	"strings"
	"testing"
)

// hopperKernel wraps a body for a warpgroup: %r1 is the thread, %rd3 the address of
// its word of 128, and sm has two times 1024 bytes and two barriers behind them.
func hopperKernel(body string) string {
	return `.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(
	.param .u64 p
)
{
	.reg .pred %p<4>;
	.reg .b16 %h<9>;
	.reg .f32 %f<20>;
	.reg .b32 %r<20>;
	.reg .b64 %rd<9>;
	.shared .align 1024 .b8 sm[2064];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	setp.ne.u32 %p1, %r1, 0;
` + body + `
	ret;
}
`
}

// onHopper runs a body on a warpgroup over 128 words, whose word i holds i.
func onHopper(body string) ([]uint32, error) { return runWords(hopperKernel(body), 128) }

const (
	initOne   = "@%p1 bra $I; mbarrier.init.shared::cta.b64 [sm+2048], 1; fence.proxy.async.shared::cta; $I: bar.sync 0; "
	copy64    = "@%p1 bra $C; mbarrier.arrive.expect_tx.shared::cta.b64 _, [sm+2048], 64; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%rd1+128], 64, [sm+2048]; $C: "
	waitFirst = "$W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [sm+2048], 0; @!%p2 bra $W; "
)

// TestBulkCopies: a phase completes with its arrivals and bytes, and then the copied
// words are there: word 3 of those from word 32 on.
func TestBulkCopies(t *testing.T) {
	t.Parallel()
	got, err := onHopper(initOne + copy64 + waitFirst + "ld.shared.u32 %r2, [sm+12]; st.global.u32 [%rd3], %r2;")
	if err != nil || got[0] != 35 || got[127] != 35 {
		t.Errorf("%d, %v", got[0], err)
	}
}

// TestPhases: the second phase of a barrier of 128 arrivals completes after all have
// arrived twice; until then the second parity is that of the phase before the first.
func TestPhases(t *testing.T) {
	t.Parallel()
	body := "@%p1 bra $I; mbarrier.init.shared::cta.b64 [sm+2048], 128; $I: bar.sync 0; " +
		"mbarrier.try_wait.parity.shared::cta.b64 %p2, [sm+2048], 1; selp.b32 %r2, 5, 7, %p2; " + // at once: parity 1 has completed
		"mbarrier.arrive.shared::cta.b64 _, [sm+2048]; " + waitFirst +
		"atom.shared.add.u32 %r3, [sm], 1; mbarrier.arrive.shared::cta.b64 _, [sm+2048]; $V: mbarrier.try_wait.parity.shared::cta.b64 %p2, [sm+2048], 1; @!%p2 bra $V; " +
		"ld.shared.u32 %r4, [sm]; add.u32 %r2, %r2, %r4; st.global.u32 [%rd3], %r2;"
	got, err := onHopper(body)
	if err != nil || got[0] != 5+127 || got[127] != 5+127 { // memory starts as −1
		t.Errorf("%d, %v", got[0], err)
	}
}

// aHalf puts its row's number within the warpgroup into column 9 of A: columns 8 and
// 9 of rows g and g + 8 are registers 2 and 3 of lane 4·g.
const aHalf = `shr.u32 %r2, %r1, 5; shl.b32 %r2, %r2, 4; and.b32 %r3, %r1, 31; shr.u32 %r4, %r3, 2; add.u32 %r2, %r2, %r4;
	and.b32 %r3, %r1, 3; setp.ne.u32 %p2, %r3, 0; cvt.rn.f32.u32 %f1, %r2; cvt.rn.f16.f32 %h1, %f1; add.f32 %f1, %f1, 0f41000000; cvt.rn.f16.f32 %h2, %f1;
	mov.b32 %r5, 0; mov.b16 %h3, 0; mov.b32 %r6, {%h3, %h1}; mov.b32 %r7, {%h3, %h2}; selp.b32 %r6, 0, %r6, %p2; selp.b32 %r7, 0, %r7, %p2; `

// bZero clears eight rows of 64 columns of B and sets row 3, column 9 to 2. Column 9
// is in piece 1 of the row, which the 128-byte swizzle puts at 1 XOR 3 = 2: byte
// 3·128 + 2·16 + 2 = 418.
const bZero = `shl.b32 %r8, %r1, 3; mov.u32 %r9, sm; add.u32 %r8, %r8, %r9; mov.b64 %rd5, 0; st.shared.b64 [%r8], %rd5; bar.sync 0;
	@%p1 bra $B; mov.b16 %h4, 0x4000; st.shared.b16 [sm+418], %h4; $B: `

// The descriptor: 128-byte swizzle (1 << 62), 1024 bytes from eight rows to the next
// (64 << 32), start 0.
const startD = `mov.f32 %f2, 0f3F800000; mov.f32 %f3, 0f3F800000; mov.f32 %f4, 0f3F800000; mov.f32 %f5, 0f3F800000; mov.b64 %rd6, 0x4000004000010000; `
const mma64 = `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f2,%f3,%f4,%f5}, {%r5,%r5,%r6,%r7}, %rd6, 1, 1, 1, 0; `

// TestWGMMA: D[row][3] = 1 + 2·row, in registers 1 and 3 of lane 4·g + 1 for rows g
// and g + 8 of a warp's 16.
func TestWGMMA(t *testing.T) {
	t.Parallel()
	body := aHalf + bZero + "fence.proxy.async.shared::cta; bar.sync 0; " + startD + "wgmma.fence.sync.aligned; " + mma64 + mma64 +
		"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; "
	for _, c := range []struct {
		register string
		add      int
	}{{"%f3", 0}, {"%f5", 8}} {
		got, err := onHopper(body + "st.global.f32 [%rd3], " + c.register + ";")
		if err != nil {
			t.Fatal(err)
		}
		for i, bits := range got {
			want := 1.0 // the other columns of B are 0
			if row := i/32*16 + i%32/4 + c.add; i%4 == 1 {
				want += 2 * 2 * float64(row) // two ops
			}
			if v := float64(math.Float32frombits(bits)); v != want {
				t.Fatalf("%s of thread %d is %v, want %v", c.register, i, v, want)
			}
		}
	}
}

// TestHopperFaults: what is missing is an error, or leaves no number.
func TestHopperFaults(t *testing.T) {
	t.Parallel()
	all := aHalf + bZero + "fence.proxy.async.shared::cta; bar.sync 0; " + startD + "wgmma.fence.sync.aligned; " + mma64 + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.global.f32 [%rd3], %f3;"
	copied := initOne + copy64 + waitFirst + "ld.shared.u32 %r2, [sm+12]; st.global.u32 [%rd3], %r2;"
	for name, c := range map[string]struct{ text, old, new, want string }{
		"no proxy fence":             {all, "fence.proxy.async.shared::cta;", "", ""},
		"no wgmma.fence":             {all, "wgmma.fence.sync.aligned;", "", "no wgmma.fence"},
		"no wait":                    {all, "wgmma.wait_group.sync.aligned 0;", "", "without waiting for wgmma"},
		"a wait for too few":         {all, "wait_group.sync.aligned 0", "wait_group.sync.aligned 1", "without waiting for wgmma"},
		"a result used too early":    {all, "wgmma.wait_group.sync.aligned 0;", "add.f32 %f3, %f3, 0f00000000; wgmma.wait_group.sync.aligned 0;", ""},
		"another swizzle":            {all, "0x4000004000010000", "0x8000004000010000", "128-byte swizzle"},
		"half a warpgroup":           {all, mma64, "setp.gt.u32 %p3, %r1, 63; @%p3 bra $H; " + mma64 + "$H: ", "warps of a warpgroup executed 1 and 0"},
		"no wait for the copy":       {copied, waitFirst, "", "ended before 1 bulk copies"},
		"the wrong parity":           {copied, "[sm+2048], 0;", "[sm+2048], 1;", "ended before 1 bulk copies"},
		"no arrival":                 {copied, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [sm+2048], 64;", "", "wait for ever"},
		"too many bytes":             {copied, "2048], 64; cp", "2048], 80; cp", "wait for ever"},
		"no fence after init":        {copied, "fence.proxy.async.shared::cta;", "", "without a proxy fence"},
		"no barrier":                 {copied, "mbarrier.init.shared::cta.b64 [sm+2048], 1;", "", "no mbarrier"},
		"a copy of 8 bytes":          {copied, "[%rd1+128], 64", "[%rd1+128], 8", "8 bytes to"},
		"a copy from outside memory": {copied, "[%rd1+128]", "[%rd1+512]", "no memory of the device"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(c.text, c.old, c.new, 1)
			if text == c.text {
				t.Fatalf("nothing changed: no %s", c.old)
			}
			got, err := onHopper(text)
			if c.want == "" {
				if v := math.Float32frombits(got[1]); err != nil || v == v {
					t.Errorf("%v, %v: expected no number", v, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, expected …%s…", err, c.want)
			}
		})
	}
}
