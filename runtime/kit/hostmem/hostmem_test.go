package hostmem

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAvailable: the smallest of the machine's memory and what its cgroups leave.
func TestAvailable(t *testing.T) {
	t.Parallel()
	const limit = "sys/fs/cgroup/a/b/memory.max"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing", nil, 0},
		{"no cgroups", map[string]string{"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   2000 kB\n"}, 2000 << 10},
		{"own cgroup", map[string]string{limit: "1000000\n", "sys/fs/cgroup/a/b/memory.current": "400000\n"}, 600000},
		{"no limit", map[string]string{limit: "max\n", "sys/fs/cgroup/a/b/memory.current": "400000\n"}, 2000 << 10},
		{"outer cgroup", map[string]string{limit: "1000000\n", "sys/fs/cgroup/a/b/memory.current": "400000\n", "sys/fs/cgroup/a/memory.max": "900000\n", "sys/fs/cgroup/a/memory.current": "700000\n"}, 200000},
		{"above the machine", map[string]string{limit: "99000000000\n", "sys/fs/cgroup/a/b/memory.current": "1\n"}, 2000 << 10},
		{"cached files", map[string]string{limit: "1000000\n", "sys/fs/cgroup/a/b/memory.current": "900000\n", "sys/fs/cgroup/a/b/memory.stat": "anon 1\ninactive_file 300000\nactive_file 1000\n"}, 401000},
		{"version 1", map[string]string{"sys/fs/cgroup/memory/c/memory.limit_in_bytes": "1000000\n", "sys/fs/cgroup/memory/c/memory.usage_in_bytes": "100000\n"}, 900000},
		{"full", map[string]string{limit: "5\n", "sys/fs/cgroup/a/b/memory.current": "7\n"}, 1},
	} {
		root := t.TempDir()
		if c.files == nil {
			c.files = map[string]string{}
		} else if _, own := c.files["proc/meminfo"]; !own {
			c.files["proc/meminfo"] = "MemAvailable: 2000 kB\n"
			c.files["proc/self/cgroup"] = "1:name=systemd:/x\n4:memory:/c\n0::/a/b\n"
		}
		for name, text := range c.files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := availableIn(root); got != c.want {
			t.Errorf("%s: %d, expected %d", c.name, got, c.want)
		}
	}
}
