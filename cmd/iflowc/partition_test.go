package main

import (
	"strings"
	"testing"
)

// TestSpreadSubcommands: what the subcommands say of a model on several devices, and what
// they refuse.
func TestSpreadSubcommands(t *testing.T) {
	t.Parallel()
	text := iflowc(t, "ir", demoSpec, "--devices", "0&1;2&3", "--rank", "2", "--after", "partition").succeed(t)
	for _, want := range []string{"recv %ids {from=0, cols=128}", "repeat 4..7", "all_reduce %o {ranks=2}", "@wq[4..7]", "all_gather"} {
		if !strings.Contains(text, want) {
			t.Errorf("rank 2's program lacks %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "par ") || strings.Contains(text, "send ") {
		t.Errorf("rank 2's program:\n%s", text)
	}
	if out := iflowc(t, "explain", demoSpec, "--devices", "0&1").succeed(t); !strings.Contains(out, "decode.wq_wk_wv [128, 128] f16") {
		t.Errorf("explain says nothing of a rank's shapes:\n%.600s", out)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"there are ranks 0 to 1 on 0&1", []string{"ir", demoSpec, "--devices", "0&1", "--rank", "2"}},
		{"the model is on one device", []string{"ir", demoSpec, "--rank", "0"}},
		{"4 heads cannot be divided among 5 devices; name at most 4 in a group", []string{"check", demoSpec, "--devices", "0&1&2&3&4"}},
		{"8 device groups for 7 layers; name at most 7 groups", []string{"check", demoSpec, "--devices", "0;1;2;3;4;5;6;7"}},
		{"all groups need the same size", []string{"check", demoSpec, "--devices", "0&1;2"}},
		{"only a binary or a package runs on several devices", []string{"compile", demoSpec, "--devices", "0;1", "--emit", "lib", "-o", t.TempDir() + "/x"}},
		{"a weights file of its own", []string{"compile", demoSpec, "--devices", "0;1", "--embed-weights", "-o", t.TempDir() + "/x"}},
	} {
		if got := iflowc(t, c.args...); got.code != 2 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: exit %d, %s; expected %s", c.args, got.code, got.stderr, c.want)
		}
	}
}
