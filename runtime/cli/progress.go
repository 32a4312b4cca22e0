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
	last     time.Time
}

func newProgress(w io.Writer, what string, total int) *progress {
	return &progress{w: w, what: what, total: total, terminal: isTerminal(w), last: time.Now()}
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
	if !p.terminal {
		fmt.Fprintf(p.w, "%d of %d %s\n", done, p.total, p.what)
		return
	}
	const width = 40
	full := done * width / max(p.total, 1)
	fmt.Fprintf(p.w, "\r%s%s %d/%d %s", strings.Repeat("█", full), strings.Repeat("░", width-full), done, p.total, p.what)
}

// end clears the bar.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K")
	}
}
