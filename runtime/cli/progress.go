//go:build unix

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A progress reports the progress of a long subcommand: a bar on a terminal,
// otherwise a line every ten seconds.
type progress struct {
	w        io.Writer
	what     string
	total    int
	terminal bool
	start    time.Time
	last     time.Time
}

func newProgress(w io.Writer, what string, total int) *progress {
	return &progress{w: w, what: what, total: total, terminal: isTerminal(w), start: time.Now(), last: time.Now()}
}

// step reports that done of the total are complete.
func (p *progress) step(done int) {
	pause := 10 * time.Second
	if p.terminal {
		pause = 100 * time.Millisecond
	}
	if time.Since(p.last) < pause {
		return
	}
	p.last = time.Now()
	left := time.Duration(float64(time.Since(p.start)) * float64(p.total-done) / float64(done)).Round(time.Second)
	if !p.terminal {
		fmt.Fprintf(p.w, "%d of %d %s, %s left\n", done, p.total, p.what, left)
		return
	}
	const width = 40
	full := done * width / max(p.total, 1)
	fmt.Fprintf(p.w, "\r%s%s %d/%d %s, %s left\x1b[K", strings.Repeat("█", full), strings.Repeat("░", width-full), done, p.total, p.what, left)
}

// end clears the bar.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K")
	}
}
