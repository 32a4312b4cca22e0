package load

import "testing"

func TestReadOnlyPart(t *testing.T) {
	t.Parallel()
	const path = "/tmp/x/prog"
	for line, want := range map[string][2]uintptr{
		"00400000-00995000 r-xp 00000000 08:01 123  /tmp/x/prog":  {0x400000, 0x995000},
		"00995000-00f4b000 r--p 00595000 08:01 123  /tmp/x/prog":  {0x995000, 0xf4b000},
		"00f4b000-010b2000 rw-p 00b4b000 08:01 123  /tmp/x/prog":  {}, // written
		"00400000-00995000 r-xp 00000000 08:01 123  /tmp/x/prog2": {},
		"00995000-00400000 r-xp 00000000 08:01 123  /tmp/x/prog":  {},
		"zz-00995000 r-xp 00000000 08:01 123  /tmp/x/prog":        {},
		"7f0000000000-7f0000001000 rw-p 00000000 00:00 0":         {},
		"": {},
	} {
		from, to, ok := readOnlyPart(line, path)
		if ok != (want != [2]uintptr{}) || ok && (from != want[0] || to != want[1]) {
			t.Errorf("%q: %x to %x, %v; want %x", line, from, to, ok, want)
		}
	}
	ForgetStart() // the code that goes on running comes back
}
