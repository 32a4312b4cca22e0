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

// maxMessage is the maximum length of a failed command's messages in an error:
// enough for the first errors, not for a megabyte of template errors.
const maxMessage = 4000

// A command is one run of a program.
type command struct {
	dir, program string
	args, env    []string // env nil: that of this process
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

// message returns the end of an error: the program's output, shortened.
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
