package cpu

import (
	"reflect"
	"strings"
	"testing"
)

func TestUnwritten(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-00995000 r-xp 00000000 08:01 123  /tmp/x/prog
Rss:                1600 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00400000-00995000 r-xp 00000000 08:01 126  /tmp/x/being loaded
Anonymous:             0 kB
Swap:                  0 kB
00995000-00f4b000 r--p 00595000 08:01 123  /tmp/x/prog
Anonymous:             0 kB
00f4b000-010b2000 rw-p 00b4b000 08:01 123  /tmp/x/prog
Anonymous:             0 kB
7f0000000000-7f0000001000 rw-p 00000000 00:00 0
Anonymous:             4 kB
7f0000002000-7f0000003000 r-xp 00000000 08:01 124  /tmp/x/lib.so (deleted)
Anonymous:             0 kB
Swap:                  0 kB
7f0000003000-7f0000004000 r--p 00001000 08:01 124  /tmp/x/lib.so (deleted)
Anonymous:             4 kB
Swap:                  0 kB
7f0000004000-7f0000005000 r--p 00001000 08:01 124  /tmp/x/lib.so (deleted)
Anonymous:             0 kB
Swap:                  4 kB
7f0000005000-7f0000006000 r--s 00000000 08:01 125  /tmp/x/shared
7f0000007000-7f0000006000 r-xp 00000000 08:01 123  /tmp/x/prog
zz-00995000 r-xp 00000000 08:01 123  /tmp/x/prog
7fff0000f000-7fff00010000 r-xp 00000000 00:00 0  [vdso]
`
	want := [][2]uintptr{{0x400000, 0x995000}, {0x995000, 0xf4b000}, {0x7f0000002000, 0x7f0000003000}}
	if got := unwritten(strings.NewReader(smaps), func(path string) bool { return path == "/tmp/x/prog" || path == "/tmp/x/lib.so" }); !reflect.DeepEqual(got, want) {
		t.Errorf("%x; want %x", got, want)
	}
	AtStartup().Release() // code that is still used is paged in again
}
