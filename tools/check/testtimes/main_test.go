package main

import (
	"strings"
	"testing"
	"time"
)

const events = `{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestSlow"}
{"Action":"output","Package":"a","Test":"TestSlow","Output":"=== RUN   TestSlow\n"}
{"Action":"output","Package":"a","Test":"TestSlow","Output":"    a_test.go:3: nothing to see\n"}
{"Action":"pass","Package":"a","Test":"TestSlow","Elapsed":9.5}
{"Action":"output","Package":"a","Test":"TestGPU","Output":"    a_test.go:7: no GPU here\n"}
{"Action":"skip","Package":"a","Test":"TestGPU","Elapsed":0}
{"Action":"pass","Package":"a","Elapsed":10}
{"Action":"output","Package":"b","Test":"TestWrong","Output":"    b_test.go:9: 3, want 4\n"}
{"Action":"fail","Package":"b","Test":"TestWrong","Elapsed":0.5}
{"Action":"output","Package":"b","Test":"TestEndless","Output":"    b_test.go:12: once more\n"}
{"Action":"output","Package":"b","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"b","Elapsed":2}
no event
`

// TestReport: a failure, an unfinished test and a reason for skipping are printed, what
// passes is not; a failed package fails the command, and so does a run without tests.
func TestReport(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := &report{out: &out, tests: map[string]*test{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if r.summarize(3 * time.Second) {
		t.Error("a failed package passes")
	}
	text := out.String()
	for _, want := range []string{"3, want 4", "TestEndless did not end:\n    b_test.go:12: once more", "panic: test timed out", "skipped: no GPU here: TestGPU", "   9.5 s  a TestSlow", "no event", "3 tests in 1 packages passed, 1 packages failed, 3 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "nothing to see") {
		t.Errorf("the output of a test that passed:\n%s", text)
	}
	if (&report{out: &out, tests: map[string]*test{}}).summarize(0) {
		t.Error("a run without tests passes")
	}
}
