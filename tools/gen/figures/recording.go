package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A cast is a terminal session in asciicast version 2.
type cast struct {
	Version int `json:"version"`
	Width   int `json:"width"`
	Height  int `json:"height"`
	events  []castEvent
}

// A castEvent is the output to the terminal at a time in seconds.
type castEvent struct {
	at   float64
	text string
}

// longestPause is the maximum pause between two events; longer ones are
// shortened.
const longestPause = 0.4

// readCast reads a recording and shortens its pauses.
func readCast(path string) (*cast, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &cast{}
	var now, before float64
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if n == 1 {
			if err := json.Unmarshal(lines.Bytes(), c); err != nil || c.Version != 2 {
				return nil, fmt.Errorf("%s: not an asciicast of version 2: %w", path, err)
			}
			continue
		}
		var at float64
		var kind, text string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&at, &kind, &text}); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if kind == "o" {
			if len(c.events) > 0 {
				now += min(at-before, longestPause)
			}
			c.events, before = append(c.events, castEvent{now, text}), at
		}
	}
	return c, lines.Err()
}

// A screen is the lines of a terminal. It supports the output of line-based
// programs: line ends, carriage returns, and erasing the end of a line.
type screen struct {
	width int
	lines [][]rune
	col   int
}

func (s *screen) write(text string) {
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\n':
			s.lines, s.col = append(s.lines, nil), 0
		case '\r':
			s.col = 0
		case '\x1b':
			i = s.escape(runes, i)
		default:
			s.put(r)
		}
	}
}

// escape applies a control sequence and returns its last index.
func (s *screen) escape(runes []rune, i int) int {
	end := i + 1
	for end < len(runes) && !('a' <= runes[end] && runes[end] <= 'z' || 'A' <= runes[end] && runes[end] <= 'Z') {
		end++
	}
	last := len(s.lines) - 1
	if end < len(runes) && runes[end] == 'K' && s.col < len(s.lines[last]) {
		s.lines[last] = s.lines[last][:s.col]
	}
	return end
}

// put writes a character. It wraps a full line before its last word.
func (s *screen) put(r rune) {
	last := len(s.lines) - 1
	if s.col == s.width {
		full := s.lines[last]
		cut := len(full)
		for cut > 0 && r != ' ' && full[cut-1] != ' ' {
			cut--
		}
		if cut == 0 {
			cut = len(full)
		}
		s.lines[last] = full[:cut]
		s.lines, s.col = append(s.lines, slices.Clone(full[cut:])), len(full)-cut
		if r == ' ' {
			return
		}
		last++
	}
	for len(s.lines[last]) <= s.col {
		s.lines[last] = append(s.lines[last], ' ')
	}
	s.lines[last][s.col] = r
	s.col++
}

// A span is a text that is visible on a line for some time.
type span struct {
	line     int
	text     string
	from, to float64 // to is 0: until the end
}

// spans plays a recording and returns the visible texts with their times.
// Changes within a frame are merged.
func (c *cast) spans() (out []span, lines int, end float64) {
	const frame = 1.0 / 30
	s := &screen{width: c.Width, lines: [][]rune{nil}}
	open := map[int]int{} // line → its span
	shown := 0.0
	show := func(at float64) {
		for i, runes := range s.lines {
			text := strings.TrimRight(string(runes), " ")
			k, has := open[i]
			if has && out[k].text == text || !has && text == "" {
				continue
			}
			if has {
				out[k].to = at
			}
			open[i] = len(out)
			out = append(out, span{line: i, text: text, from: at})
		}
	}
	for i, e := range c.events {
		s.write(e.text)
		if last := i+1 == len(c.events); last || c.events[i+1].at-shown >= frame {
			show(e.at)
			shown = e.at
		}
	}
	return out, len(s.lines), shown
}

// Sizes of the terminal picture.
const (
	castLeft, castTop = 24.0, 66.0
	castSize, castRow = 14.5, 21.0
)

// recording draws the README's terminal session. It repeats, or shows its last
// frame if the reader prefers reduced motion.
func recording() ([]byte, error) {
	c, err := readCast(filepath.Join(root, dataDir, "demo.cast"))
	if err != nil {
		return nil, err
	}
	list, lines, end := c.spans()
	var final []string
	for _, s := range list {
		if s.to == 0 && s.text != "" {
			final = append(final, s.text)
		}
	}
	p := newPicture(castTop+castRow*float64(lines)+12, "Terminal: compile a model and run it", "The session ends with: "+strings.Join(final, "\n"))
	p.rect(1, 1, 798, 38, 9, "f-panel")
	p.line(0, 39.5, 800, 39.5, 1, "s-border")
	for i, tint := range []string{"c2", "c5", "c3"} {
		p.raw(`<circle class="f-%s" cx="%d" cy="20" r="6"/>`, tint, 24+20*i)
	}
	p.middle(400, 25, 13, "f-soft", "iflowc: from a spec to text")
	const hold = 5.0
	total := end + hold
	var style, body strings.Builder
	for i, s := range list {
		if s.text == "" {
			continue
		}
		class := "mono f-ink t"
		if s.to > 0 {
			class += " gone"
		}
		frames := fmt.Sprintf("0%%{opacity:0}%s{opacity:1}", percent(s.from/total))
		if s.to > 0 {
			frames += percent(s.to/total) + "{opacity:0}"
		}
		fmt.Fprintf(&style, "@keyframes k%d{%s}", i, frames)
		fmt.Fprintf(&body, `<text class="%s" style="animation-name:k%d" x="%s" y="%s" xml:space="preserve">%s</text>`+"\n", class, i, num(castLeft), num(castTop+castRow*float64(s.line)), prompt(s.text))
	}
	p.raw("<style>\n.t { font-size: %spx; white-space: pre; animation: %.2fs step-end infinite } .gone { opacity: 0 }", num(castSize), total)
	p.raw("%s\n@media (prefers-reduced-motion: reduce) { .t { animation: none } }\n</style>", style.String())
	p.b.WriteString(body.String())
	return p.bytes(), nil
}

func percent(v float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", 100*v), "0"), ".") + "%"
}

// prompt colors a prompt.
func prompt(text string) string {
	if rest, ok := strings.CutPrefix(text, "$"); ok {
		return `<tspan class="f-c3 bold">$</tspan>` + html.EscapeString(rest)
	}
	return html.EscapeString(text)
}
