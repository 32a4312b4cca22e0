package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// maxMessage bounds how much of a failing command's messages an error keeps:
// enough for the first errors, not a megabyte of template noise.
const maxMessage = 4000

// A command is one run of a program.
type command struct {
	dir, program string
	args, env    []string // env nil: this process's
}

// run runs the program and returns its standard output. When ctx ends, the
// program and every process it started (cc1, as, ld) are killed.
func (c *command) run(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.program, c.args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	killGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", filepath.Base(c.program), err, message(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// message is the tail of an error: what the program wrote, shortened.
func message(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	if len(s) > maxMessage {
		s = s[:maxMessage] + "\n…"
	}
	return ":\n" + s
}
