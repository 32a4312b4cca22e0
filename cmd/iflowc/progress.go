//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/iflowc/iflowc/codegen/compiler"
	"golang.org/x/term"
)

// A progress reports slow work on stderr: on a terminal one line that is
// rewritten, otherwise a plain line per stage.
type progress struct {
	tty   bool
	timed string    // the stage whose time is measured
	since time.Time // its start
	last  string
	shown time.Time
	width int
	later *time.Timer // prints the stage without a terminal
}

// briefStage is the duration below which a stage is not reported without a
// terminal: stages of a cached build take a fraction of it.
const briefStage = 400 * time.Millisecond

func newProgress() *progress {
	return &progress{tty: term.IsTerminal(int(os.Stderr.Fd()))}
}

// stage begins a stage whose progress is not measured.
func (p *progress) stage(name string) { p.show(name, name, true) }

// build reports a compilation's progress.
func (p *progress) build(b compiler.Progress) {
	switch {
	case b.Total == 0:
		p.stage(b.Stage)
	case b.Unit == "bytes":
		p.bytes(b.Done, b.Total)
	default:
		p.units(b.Stage, int(b.Done), int(b.Total), b.Unit)
	}
}

// units reports the finished parts of a stage, such as translation units.
func (p *progress) units(stage string, done, total int, name string) {
	left := p.left(stage, int64(done), int64(total))
	p.show(stage, fmt.Sprintf("%s %d/%d%s %s", stage, done, total, left, name), done == total)
}

// bytes reports packed weights.
func (p *progress) bytes(done, total int64) {
	if total == 0 {
		return
	}
	left := p.left("packing", done, total)
	p.show("packing", fmt.Sprintf("packing weights %3d %% of %.1f MB%s", done*100/total, float64(total)/1e6, left), done == total)
}

// left estimates the remaining time of a stage from its progress.
func (p *progress) left(stage string, done, total int64) string {
	if p.timed != stage {
		p.timed, p.since = stage, time.Now()
	}
	return timeLeft(time.Since(p.since), done, total)
}

// timeLeft returns text such as ", 12 s left", or nothing at the end and in the
// first second, which predicts little.
func timeLeft(took time.Duration, done, total int64) string {
	if took < time.Second || done <= 0 || done >= total {
		return ""
	}
	left := time.Duration(min(float64(took)*float64(total-done)/float64(done), float64(1000*time.Hour)))
	if left < 100*time.Second {
		return fmt.Sprintf(", %d s left", int(left.Seconds())+1)
	}
	return fmt.Sprintf(", %d min left", int(left.Minutes())+1)
}

// fetched reports bytes that came over the network; without a terminal, every ten
// seconds.
func (p *progress) fetched(done, total int64) {
	text := fmt.Sprintf("%.1f of %.1f MB%s", float64(done)/1e6, float64(total)/1e6, p.left("fetching", done, total))
	if !p.tty {
		if time.Since(p.shown) > 10*time.Second {
			p.shown = time.Now()
			fmt.Fprintln(os.Stderr, text)
		}
		return
	}
	p.show(p.last, text, done == total)
}

func (p *progress) show(stage, text string, force bool) {
	if !p.tty {
		if stage != p.last {
			p.stop()
			p.last, p.shown = stage, time.Now()
			p.later = time.AfterFunc(briefStage, func() { fmt.Fprintln(os.Stderr, stage) })
		}
		return
	}
	if !force && time.Since(p.shown) < 50*time.Millisecond {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(os.Stderr, "\r%s%s", text, strings.Repeat(" ", max(0, p.width-len(text))))
	p.width = len(text)
}

// stop cancels the report of a stage that was brief.
func (p *progress) stop() {
	if p.later != nil {
		p.later.Stop()
	}
}

// done clears the line.
func (p *progress) done() {
	p.stop()
	if p.tty && p.width > 0 {
		fmt.Fprintf(os.Stderr, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}
