//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// against runs bench of this binary and of others interleaved, each in its own
// process, and prints how much longer the others take. If the others were
// compiled without a choice of the compiler, this is the gain of that choice.
func (c *benchCmd) against(ctx context.Context, m *model) error {
	if c.Reps < 1 {
		return wrong(fmt.Errorf("--reps %d: expected 1 or more", c.Reps))
	}
	var rows []ablationRow
	for _, other := range c.Against {
		path, err := exec.LookPath(other)
		if errors.Is(err, exec.ErrDot) {
			err = nil
		}
		if err != nil {
			return wrong(fmt.Errorf("--against %s: %w", other, err))
		}
		got, err := c.compareWith(ctx, m.Program, path)
		if err != nil {
			return err
		}
		rows = append(rows, got...)
	}
	return c.printAblation(m, rows)
}

// compareWith compares two binaries in pairs of runs; the first pair is a warm-up.
func (c *benchCmd) compareWith(ctx context.Context, own, other string) ([]ablationRow, error) {
	var first []benchRow
	var logs [][]float64
	for i := range c.Reps + 1 {
		var out [2][]benchRow
		for j := range out {
			k := (i + j) % 2 // this, other; then other, this
			var err error
			if out[k], err = c.child(ctx, [2]string{own, other}[k]); err != nil {
				return nil, err
			}
		}
		if len(out[0]) != len(out[1]) {
			return nil, wrong(fmt.Errorf("--against %s: it runs %d tests, this binary %d; it is another kind of model", other, len(out[1]), len(out[0])))
		}
		if i == 0 {
			first, logs = out[0], make([][]float64, len(out[0]))
			continue
		}
		for r := range min(len(logs), len(out[0])) {
			logs[r] = append(logs[r], math.Log(out[0][r].TokS.Median/out[1][r].TokS.Median))
		}
	}
	rows := make([]ablationRow, len(first))
	for r, l := range logs {
		rows[r] = ablationOf(filepath.Base(other), first[r].Test, first[r].Batch, l)
	}
	return rows, nil
}

// child is one short run of a binary's bench with this one's settings.
func (c *benchCmd) child(ctx context.Context, program string) ([]benchRow, error) {
	number := strconv.Itoa
	args := []string{"bench", "--json", "--reps=1", "--prompt=" + number(c.Prompt), "--gen=" + number(c.Gen), "--depth=" + number(c.Depth), "--batch=" + join(c.Batch)}
	if len(c.Lengths) > 0 {
		args = append(args, "--lengths="+join(c.Lengths))
	}
	if c.Threads > 0 {
		args = append(args, "--threads="+number(c.Threads))
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("%s bench: %w: %s", program, err, lines[len(lines)-1])
	}
	var rows []benchRow
	if err := json.Unmarshal(stdout.Bytes(), &rows); err != nil {
		return nil, fmt.Errorf("%s bench: its output is not that of bench --json: %w", program, err)
	}
	for _, r := range rows {
		if !(r.TokS.Median > 0) {
			return nil, fmt.Errorf("%s bench: %s reports %v tok/s", program, r.Test, r.TokS.Median)
		}
	}
	return rows, nil
}

// ablationOf summarizes paired runs, each the logarithm of a ratio of times.
func ablationOf(without, test string, batch int, logs []float64) ablationRow {
	slices.Sort(logs)
	percent := func(log float64) float64 { return 100 * (math.Exp(log) - 1) }
	return ablationRow{Without: without, Test: test, Batch: batch, Gain: percent(median(logs)), Low: percent(logs[len(logs)/4]), High: percent(logs[len(logs)-1-len(logs)/4])}
}

func join(list []int) string {
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}
