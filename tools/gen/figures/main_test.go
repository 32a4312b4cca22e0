package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// TestMain runs the tests with the paths of the repository's root.
func TestMain(m *testing.M) {
	root = "../../.."
	os.Exit(m.Run())
}

// TestFigures: every committed picture is what the command draws, is XML with a
// title and a description, and stays within its page.
func TestFigures(t *testing.T) {
	for _, f := range figures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			want, err := f.draw()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, "docs/images", f.name+".svg")
			if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
				t.Errorf("%s is stale (%v): run go generate ./tools/gen/figures", path, err)
			}
			if len(want) > 100_000 {
				t.Errorf("%d bytes: pictures have at most 100,000", len(want))
			}
			check(t, want)
		})
	}
}

// check reads a picture's elements.
func check(t *testing.T, data []byte) {
	t.Helper()
	classes, open := map[string]bool{}, map[string]bool{}
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		open[e.Name.Local] = true
		for _, a := range e.Attr {
			if a.Name.Local == "class" {
				for name := range strings.FieldsSeq(a.Value) {
					classes[name] = true
				}
			}
			if a.Name.Local == "x" && e.Name.Local == "text" {
				if x, err := strconv.ParseFloat(a.Value, 64); err != nil || x < 0 || x > plot.Width {
					t.Errorf("a text at %s", a.Value)
				}
			}
		}
	}
	for _, name := range []string{"title", "desc", "text"} {
		if !open[name] {
			t.Errorf("no <%s>", name)
		}
	}
	if open["script"] || open["image"] {
		t.Error("a picture with a script or an image")
	}
	for name := range classes {
		if !strings.Contains(string(data), "."+name) {
			t.Errorf("class %s has no rule", name)
		}
	}
}

// TestPasses: the pipeline's picture describes every pass.
func TestPasses(t *testing.T) {
	t.Parallel()
	for _, p := range passes.Pipeline {
		if p.Brief == "" {
			t.Errorf("pass %s: add its Brief", p.Name)
		}
	}
}

// TestScreen: what programs send to a terminal.
func TestScreen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, want string }{
		{"ab\r\ncd", "ab|cd"},
		{"12 %\r100 %", "100 %"},
		{"abcdef\rxy\x1b[K", "xy"},
		{"\x1b[1mbold\x1b[0m", "bold"},
		{"one two three four", "one two|three four"},
		{"abcdefghijklmno", "abcdefghij|klmno"},
	} {
		s := &screen{width: 10, lines: [][]rune{nil}}
		s.write(c.sent)
		var lines []string
		for _, l := range s.lines {
			lines = append(lines, strings.TrimRight(string(l), " "))
		}
		if got := strings.Join(lines, "|"); got != c.want {
			t.Errorf("%q gives %q, want %q", c.sent, got, c.want)
		}
	}
}

// TestData: committed measurements name no folder of the machine that made them.
func TestData(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, dataDir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(fmt.Errorf("no data: %w", err))
	}
	folder := regexp.MustCompile(`/(tmp|root|home|work|mnt|var)/`)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := folder.Find(text); got != nil {
			t.Errorf("%s names %s…", path, got)
		}
	}
}
