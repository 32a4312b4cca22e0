//go:build unix

package comm

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFinalizePMI plays the launcher at the other end of the descriptor.
func TestFinalizePMI(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"cmd=finalize_ack\n": "", "cmd=unknown\n": "unknown", "": "answers"} {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		launcher := os.NewFile(uintptr(ends[1]), "launcher")
		said := make(chan string, 1)
		go func() {
			var data [64]byte
			n, _ := launcher.Read(data[:])
			launcher.WriteString(answer)
			launcher.Close()
			said <- string(data[:n])
		}()
		err = finalizePMI(strconv.Itoa(ends[0]))
		unix.Close(ends[0])
		if got := <-said; got != "cmd=finalize\n" || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("said %q, answered %q: %v, expected %q", got, answer, err, want)
		}
	}
	if finalizePMI("") == nil || finalizePMI("-1") == nil {
		t.Error("no descriptor was taken for one")
	}
}
