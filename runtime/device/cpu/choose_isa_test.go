package cpu

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

var libs = []manifest.Lib{
	{ISA: "avx512vnni", Needs: []string{"AVX512F", "AVX512VNNI"}},
	{ISA: "avx2", Needs: []string{"AVX2"}},
	{ISA: "portable"},
}

func TestChooseISA(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, isa, features string
		want                int
		err                 string
	}{
		{"best", "", "AVX512F AVX512VNNI AVX2", 0, ""},
		{"half of the features", "", "AVX512F AVX2", 1, ""},
		{"none", "", "", 2, ""},
		{"named", "portable", "AVX512F AVX512VNNI AVX2", 2, ""},
		{"named, processor lacks it", "avx2", "", 0, "lacks AVX2"},
		{"unknown", "neon", "AVX2", 0, "avx512vnni, avx2, portable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			has := func(f string) bool { return strings.Contains(" "+c.features+" ", " "+f+" ") }
			got, err := chooseISA(libs, c.isa, has)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, expected %q in it", err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("picked %d (%v), expected %d", got, err, c.want)
			}
		})
	}
	if _, err := chooseISA(libs[:2], "", func(string) bool { return false }); err == nil || !strings.Contains(err.Error(), "avx512vnni needs AVX512F") {
		t.Errorf("no library fits: error %v", err)
	}
}

func TestUnknownFeature(t *testing.T) {
	t.Parallel()
	if hasFeature("NoSuchThing") {
		t.Error("an unknown feature is reported as present")
	}
}
