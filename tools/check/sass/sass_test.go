package sass

import (
	"regexp"
	"testing"
)

// dump is a kernel whose main loop uses its first load one iteration later and its second
// one at once.
const dump = `
Fatbin elf code:
arch = sm_90a
 Function k:
  REG:40 STACK:0 SHARED:1152 LOCAL:0 CONSTANT[0]:552
		Function : k
        /*0000*/                   LDC R1, c[0x0][0x28] ;  /* 0x1 */
        /*0010*/                   LDG.E.NA.128.CONSTANT R4, desc[UR4][R2.64] ;  /* 0x1 */
        /*0020*/                   IDP.4A.U8.S8 R20, R5, R18.reuse, RZ ;  /* 0x1 */
        /*0030*/              @!P1 LDG.E.NA.128.CONSTANT R4, desc[UR4][R2.64] ;  /* 0x1 */
        /*0040*/                   LDG.E.NA.64.CONSTANT R8, desc[UR4][R2.64+0x40] ;  /* 0x1 */
        /*0050*/                   HADD2.F32 R9, -RZ, R9.H0_H0 ;  /* 0x1 */
        /*0060*/               @P0 BRA 0x20 ;  /* 0x1 */
        /*0070*/                   EXIT ;  /* 0x1 */
        /*0080*/                   BRA 0x80 ;  /* 0x1 */
`

func TestMainLoop(t *testing.T) {
	k := Parse(dump)["sm_90a"]["k"]
	if k == nil || k.Registers != 40 || k.Shared != 1152 || len(k.Code) != 9 {
		t.Fatalf("parsed %+v", k)
	}
	if n := k.Count(regexp.MustCompile(`LDG.*128`)); n != 2 {
		t.Errorf("%d loads of 16 bytes", n)
	}
	// The wait for R5 has only its own 16 bytes under way; the wait for R9 both loads.
	l, ok := k.MainLoop()
	if !ok || l.Instructions != 5 || l.Bytes != 24 || l.InFlight != (16+24)/2.0 || l.Opening != 16 || l.Ops["IDP"] != 1 || l.Outer != 0 {
		t.Errorf("main loop %+v", l)
	}
	if n := k.Resident("sm_90a", 256, 60<<10); n != 3 {
		t.Errorf("%d blocks fit, expected 3", n)
	}
	if n := k.Resident("sm_86", 256, 0); n != 6 {
		t.Errorf("%d blocks fit, expected 6", n)
	}
}

// async is a loop around cp.async that leaves three groups pending.
const async = `
arch = sm_80
		Function : k
        /*0000*/                   DEPBAR.LE SB0, 0x3 ;  /* 0x1 */
        /*0010*/                   LDGSTS.E.BYPASS.128 [R27], [R20.64] ;  /* 0x1 */
        /*0020*/                   LDGSTS.E.BYPASS.128 [R27+0x200], [R20.64+0x200] ;  /* 0x1 */
        /*0030*/                   LDGDEPBAR ;  /* 0x1 */
        /*0040*/               @P0 BRA 0x0 ;  /* 0x1 */
`

func TestAsync(t *testing.T) {
	l, ok := Parse(async)["sm_80"]["k"].MainLoop()
	if !ok || l.Bytes != 32 || l.InFlight != 128 || l.Opening != 128 {
		t.Errorf("main loop %+v", l)
	}
}

// tensor has a loop of two tensor-core instructions within another loop.
const tensor = `
arch = sm_90a
		Function : k
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0020*/                   HGMMA.64x128x16.F32 R24, R104, gdesc[UR4], R24 ;
        /*0030*/                   HGMMA.64x128x16.F32 R24, R104, gdesc[UR4], R24 ;
        /*0040*/              @!P0 BRA 0x20 ;
        /*0050*/                   BRA 0x60 ;
        /*0060*/               @P1 BRA 0x10 ;
`

func TestTensorLoop(t *testing.T) {
	if mma, all := Parse(tensor)["sm_90a"]["k"].TensorLoop(); mma != 2 || all != 3 {
		t.Errorf("%d tensor-core instructions of %d, want 2 of 3", mma, all)
	}
}
