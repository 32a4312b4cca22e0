//go:build unix

package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/expand"
)

// TestModules lists the modules, and prints one as text and for machines.
func TestModules(t *testing.T) {
	t.Parallel()
	list := iflowc(t, "modules").succeed(t)
	for _, want := range []string{"\nbasic.ifl\n", "\n  linear                   multiplies each row by a stored matrix and adds the stored bias, if there is one\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in the list:\n%s", want, list)
		}
	}
	text := iflowc(t, "modules", "scaled").succeed(t)
	if want := "# scaled multiplies by a constant, unless that is 1.\nmodule scaled(%x, by) {\n"; !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "\n}\n") {
		t.Errorf("module scaled: %s", text)
	}
	var m expand.Module
	decode(t, iflowc(t, "modules", "window_of", "--json").succeed(t), &m)
	want := &expand.Parameter{Name: "attention_pattern", Module: "window_of", Kind: "word", Words: []string{"full", "sliding"}, Layered: true, Default: "", Doc: "attention of each layer, repeated; sliding: with sliding_window; default: sliding_window applies to all layers"}
	if len(m.Params) < 3 || !reflect.DeepEqual(m.Params[1], want) || m.Params[2].Doc == "" {
		t.Errorf("parameters %+v, want %+v second, and a comment behind the third", m.Params, want)
	}
	if text := iflowc(t, "modules", "--family", "llama", "scaled").succeed(t); !strings.Contains(text, "\nmodule scaled(") {
		t.Errorf("module scaled of llama: %s", text)
	}
	if o := iflowc(t, "modules", "--family", "lama"); o.code != exitUsage || !strings.Contains(o.stderr, `did you mean "llama"?`) {
		t.Errorf("an unknown family: %d, %s", o.code, o.stderr)
	}
	if o := iflowc(t, "modules", "lineer"); o.code != exitUsage || !strings.Contains(o.stderr, "did you mean linear?") {
		t.Errorf("an unknown name: %d, %s", o.code, o.stderr)
	}
}
