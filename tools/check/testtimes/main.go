// Command testtimes reads the output of go test -json and prints it for people:
// a line for each package, what failed tests print, why tests were skipped, and
// the slowest tests.
//
//	go test -json ./... | go run ./tools/check/testtimes
//
// The exit status is 1 if a package failed or none was tested.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// slowest is the number of tests to list.
const slowest = 10

// An event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// A test is a top-level test or a part of one.
type test struct {
	pkg, name string
	seconds   float64
	skipped   bool
	output    strings.Builder // of the test alone, until it passes
}

// A report is what the events said.
type report struct {
	out      io.Writer
	tests    map[string]*test // by package and name
	order    []*test          // that have ended
	packages int
	failed   int
}

func main() {
	start := time.Now()
	r := &report{out: os.Stdout, tests: map[string]*test{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
	if !r.summarize(time.Since(start)) {
		os.Exit(1)
	}
}

// read handles events until the end of the input. Lines that are no events, such as
// the errors of a build, are printed as they are.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			r.handle(&e)
		} else if line != "" {
			fmt.Fprintln(r.out, strings.TrimSuffix(line, "\n"))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) handle(e *event) {
	key := e.Package + " " + e.Test
	t := r.tests[key]
	if t == nil {
		t = &test{pkg: e.Package, name: e.Test}
		r.tests[key] = t
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			t.output.WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		t.seconds, t.skipped = e.Elapsed, e.Action == "skip"
		if e.Test == "" {
			r.packageEnded(e, t)
			return
		}
		r.order = append(r.order, t)
		if e.Action == "fail" {
			fmt.Fprint(r.out, t.output.String())
		}
		if !t.skipped {
			t.output.Reset()
		}
	}
}

// packageEnded prints a package's line; of one that failed all that it printed itself.
func (r *report) packageEnded(e *event, t *test) {
	switch {
	case e.Action == "fail":
		r.failed++
		fmt.Fprint(r.out, t.output.String())
		fmt.Fprintf(r.out, "FAIL  %6.1f s  %s\n", e.Elapsed, e.Package)
		r.unfinished(e.Package)
	case e.Action == "pass":
		r.packages++
		fmt.Fprintf(r.out, "ok    %6.1f s  %s\n", e.Elapsed, e.Package)
	}
}

// unfinished prints what tests say that a panic or a time limit ended.
func (r *report) unfinished(pkg string) {
	for _, t := range r.tests {
		if t.pkg == pkg && t.name != "" && !slices.Contains(r.order, t) {
			fmt.Fprintf(r.out, "%s did not end:\n%s", t.name, t.output.String())
		}
	}
}

// summarize prints the skipped and the slowest tests. It returns whether tests ran and
// all passed.
func (r *report) summarize(took time.Duration) bool {
	skipped := map[string][]string{} // names by reason
	for _, t := range r.order {
		if t.skipped {
			why := reason(t.output.String())
			skipped[why] = append(skipped[why], t.name)
		}
	}
	for why, names := range skipped {
		fmt.Fprintf(r.out, "skipped: %s: %s\n", why, strings.Join(names, " "))
	}
	slices.SortStableFunc(r.order, func(a, b *test) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintln(r.out, "the slowest tests:")
	for _, t := range r.order[:min(slowest, len(r.order))] {
		fmt.Fprintf(r.out, "%6.1f s  %s %s\n", t.seconds, t.pkg, t.name)
	}
	fmt.Fprintf(r.out, "%d tests in %d packages passed, %d packages failed, %.0f s\n", len(r.order), r.packages, r.failed, took.Seconds())
	return r.failed == 0 && r.packages > 0
}

// reason is the message of a skipped test: its text behind the file and line.
func reason(output string) string {
	for line := range strings.Lines(output) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), ".go:"); ok {
			_, text, _ = strings.Cut(text, ": ")
			return text
		}
	}
	return "without a reason"
}
