package compiler

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// TestGenerationFile: a file of settings that cannot be read is named; config.json takes
// its place only where there is none.
func TestGenerationFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, want string // part of the notice; "": none
		file             string // where the settings are from
	}{
		{"", "", "", "config.json"},
		{"", `{"min_length": 3}`, "", "generation_config.json"},
		{"", "null", "", "generation_config.json"},
		{"", "[1]", "generation_config.json is a JSON array, expected an object; its settings are not used", "generation_config.json"},
		{"", `{"temperature": NaN}`, "generation_config.json: invalid character 'N'", "generation_config.json"},
		{".", "", "not a regular file; its settings are not used", "."},
		{"missing.json", "", "missing.json: no such file or directory", "missing.json"},
	} {
		dir, notes := t.TempDir(), ""
		if c.text != "" {
			if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := &spec.Spec{ModelDir: dir, GenerationConfig: c.name, Config: map[string]any{"min_length": 3.0}}
		m := &Model{Model: &spec.Model{Spec: s}, set: &checkpoint.Set{}, opt: Options{Notice: func(line string) { notes += fmt.Sprintln(line) }}}
		man := &manifest.Manifest{}
		m.generation(man)
		if c.want == "" && notes != "" || !strings.Contains(notes, c.want) || man.GenerationFile != c.file || man.Generation == nil {
			t.Errorf("%q %s: %s, %q", c.name, c.text, man.GenerationFile, notes)
		}
		if got, want := man.Generation["min_length"] != nil, c.file == "config.json" || strings.Contains(c.text, "min_length"); got != want {
			t.Errorf("%q %s: min_length is set: %t", c.name, c.text, got)
		}
	}
}
