package sdnotify_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/sdnotify"
)

func TestSend(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := sdnotify.Send(sdnotify.Ready); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", path)
	if err := sdnotify.Send(sdnotify.Ready); err == nil {
		t.Error("no error without a listener")
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := sdnotify.Send(sdnotify.Stopping); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if n, err := l.Read(buf); err != nil || string(buf[:n]) != "STOPPING=1" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}
