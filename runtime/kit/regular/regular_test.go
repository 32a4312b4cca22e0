package regular_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// TestReadIn checks which paths of a folder are read: files and links within the folder,
// and within the repository of a snapshot. Everything else is an error at once.
func TestReadIn(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	folder, hash := filepath.Join(base, "model"), strings.Repeat("0a", 20)
	repository := filepath.Join(base, "models--owner--name")
	snapshot := filepath.Join(repository, "snapshots", hash)
	for _, dir := range []string{folder + "/sub", snapshot + "/sub", repository + "/blobs", base + "/models--owner--other/blobs"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{folder + "/file", folder + "/sub/file", repository + "/blobs/b", base + "/models--owner--other/blobs/b", base + "/secret"} {
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(folder+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		folder + "/link": "sub/file", folder + "/up": "../secret", folder + "/env": "/proc/self/environ", folder + "/zero": "/dev/zero", folder + "/dir": "..",
		folder + "/dangling": "none", folder + "/loop": "loop", folder + "/absolute": folder + "/file", snapshot + "/blob": "../../blobs/b", snapshot + "/sub/blob": "../../../blobs/b",
		snapshot + "/other": "../../../models--owner--other/blobs/b", base + "/alias": "model",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ folder, name, want string }{
		{folder, "file", ""}, {folder, "link", ""}, {folder, "sub/file", ""}, {folder, "absolute", ""}, {base + "/alias", "link", ""},
		{snapshot, "blob", ""}, {snapshot, "sub/blob", ""}, {snapshot + "/sub", "blob", ""}, {folder, "../secret", ""},
		{folder, "up", "leads out of"}, {folder, "env", "to /proc/"}, {folder, "zero", "leads out of"}, {folder, "dir/secret", "leads out of"}, {snapshot, "other", "leads out of"},
		{folder, "pipe", "not a regular file"}, {folder, "sub", "not a regular file"}, {folder, "loop", "too many links"},
	} {
		data, err := regular.ReadIn(c.folder, c.name, 4)
		if got := errors.Join(err); c.want == "" && (err != nil || string(data) != "text") || c.want != "" && (err == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("%s in %s: %q, %v", c.name, c.folder, data, err)
		}
	}
	for _, name := range []string{"none", "dangling"} {
		if _, err := regular.ReadIn(folder, name, 4); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := regular.ReadIn(folder, "file", 3); err == nil || !strings.Contains(err.Error(), "larger than 3 bytes") {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestRead checks that pipes and devices are refused without being opened, and that files
// without a size have a limit.
func TestRead(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "not a regular file", "/dev/zero": "not a regular file", "/proc/self/maps": "larger than 10 bytes"} {
		if _, err := regular.Read(path, 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if target := regular.Elsewhere("/proc/self", "/proc/self/exe"); target == "" {
		t.Error("no target of a link to elsewhere")
	}
}
