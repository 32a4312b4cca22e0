package access

import (
	"context"
	"os"
	"time"
)

// watchTime is the time between two looks at a file of keys.
const watchTime = 2 * time.Second

// Watch reloads the keys until ctx ends: at each signal, and when the file at path has
// changed. It waits until the file has stayed the same for watchTime, so that a file
// that is being written is read once it is complete. "": no file. The result of each
// reload goes to report.
func (c *Control) Watch(ctx context.Context, signals <-chan os.Signal, path string, report func(Change, error)) {
	ticks := time.NewTicker(watchTime)
	defer ticks.Stop()
	look := func() os.FileInfo {
		if path == "" {
			return nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil
		}
		return info
	}
	read := look()
	for last := read; ; {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			read = look()
			last = read
		case <-ticks.C:
			now := look()
			if stable := sameFile(now, last); !stable || sameFile(now, read) {
				last = now
				continue
			}
			read = now
		}
		report(c.Reload())
	}
}

// sameFile reports whether two looks found the same file, unchanged; nil: none.
func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
