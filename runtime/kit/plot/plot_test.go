package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// example is a figure with all features.
func example() *Figure {
	return &Figure{Title: "Time <of> a matmul", Panels: []Panel{
		{
			Title: "weights [64, 32], q4", X: Axis{Label: "rows", Log: true, Ticks: []float64{1, 2, 4, 8}}, Y: Axis{Label: "µs a row", Log: true},
			Series: []Series{
				{Name: "gemv", X: []float64{1, 2, 4, 8}, Y: []float64{10, 10, 10, 10}, Low: []float64{9, 9, 9, 9}, High: []float64{11, 11, 11, 11}},
				{Name: "gemm", X: []float64{1, 2, 4, 8}, Y: []float64{40, 20, 0, 5}},
			},
			Marks: []Mark{{4, "M1 = 4"}, {8, "M2 = 8"}},
		},
		{
			Title: "points", X: Axis{Label: "x"}, Y: Axis{Label: "share", Percent: true, Max: 1},
			Series: []Series{{Name: "a", X: []float64{0, 1}, Y: []float64{0.25, 0.75}, Low: []float64{0.2, 0.7}, High: []float64{0.3, 0.8}, Points: true}},
		},
		{Title: "nothing"},
		{Title: "one value", X: Axis{Log: true}, Y: Axis{}, Series: []Series{{Steps: true, X: []float64{3}, Y: []float64{7}}}},
	}}
}

// TestSVG checks that the SVG is valid XML, contains every label, escaped, and is
// deterministic.
func TestSVG(t *testing.T) {
	t.Parallel()
	data := example().SVG()
	d := xml.NewDecoder(bytes.NewReader(data))
	var text strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			text.Write(c)
			text.WriteByte('|')
		}
	}
	for _, want := range []string{"Time <of> a matmul|", "µs a row|", "gemv|", "M1 = 4|", "20 %|", "weights [64, 32], q4|"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
	if strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Inf") {
		t.Error("coordinates that are no numbers")
	}
	if !bytes.Equal(data, example().SVG()) {
		t.Error("another time, other bytes")
	}
}

// TestPNG checks that curves are at the positions of the axes, in their colors, on
// white.
func TestPNG(t *testing.T) {
	t.Parallel()
	f := example()
	const scale = 2
	data, err := f.PNG(scale)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	w, h := f.size()
	if got := picture.Bounds().Size(); got.X != int(w*scale) || got.Y != int(math.Ceil(h*scale)) {
		t.Errorf("size %v of a figure of %v by %v", got, w, h)
	}
	at := func(p point) color.NRGBA {
		return color.NRGBAModel.Convert(picture.At(int(p.x*scale), int(p.y*scale))).(color.NRGBA)
	}
	l := newLayout(&f.Panels[0], point{gap, gap/2 + titleH}, panelW, panelH)
	if got := at(point{l.x.at(3), l.y.at(10)}); got != colorOf(0) {
		t.Errorf("on the first curve %v, want %v", got, colorOf(0))
	}
	if got := at(point{l.x.at(1.4142135), l.y.at(28.2842712)}); got != colorOf(1) {
		t.Errorf("on the second curve %v, want %v", got, colorOf(1))
	}
	band := at(point{l.x.at(1.2), l.y.at(9.4)})
	if band == white || band == colorOf(0) || band.B < band.R {
		t.Errorf("in the band %v", band)
	}
	if got := at(point{w - 2, h - 2}); got != white {
		t.Errorf("in the corner %v", got)
	}
	small := &Figure{Panels: f.Panels[:1]}
	first, err := small.PNG(1)
	if again, err2 := small.PNG(1); err != nil || err2 != nil || !bytes.Equal(first, again) {
		t.Error("another time, other bytes", err, err2)
	}
	if _, err := f.PNG(1000); err == nil {
		t.Error("a picture of a gigapixel")
	}
}

// TestText checks that glyphs leave ink at their positions and nowhere else.
func TestText(t *testing.T) {
	t.Parallel()
	c := newRaster(60, 60, 1)
	c.text(point{10, 30}, "H", textStyle{size: 24, c: ink})
	inked := func(x0, y0, x1, y1 int) (n int) {
		for x := x0; x < x1; x++ {
			for y := y0; y < y1; y++ {
				if c.image.RGBAAt(x, y).R < 128 {
					n++
				}
			}
		}
		return n
	}
	if n := inked(10, 12, 28, 31); n < 60 || n > 200 {
		t.Errorf("%d dark pixels in the letter", n)
	}
	if all, in := inked(0, 0, 60, 60), inked(9, 11, 29, 32); all != in {
		t.Errorf("%d of %d dark pixels are outside of the letter", all-in, all)
	}
	c = newRaster(60, 60, 1)
	c.text(point{30, 50}, "HH", textStyle{size: 24, c: ink, turned: true})
	if n := inked(10, 14, 32, 51); n < 120 {
		t.Errorf("turned: %d dark pixels left of the line", n)
	}
	if a, b := textWidth("HH", 10), textWidth("H", 10); a != 2*b || b < 5 || b > 9 {
		t.Errorf("widths %v, %v", a, b)
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		axis Axis
		data []float64
		want string
	}{
		{Axis{}, []float64{0, 94}, "0 20 40 60 80"},
		{Axis{}, []float64{0.3, 0.4}, "0 0.1 0.2 0.3 0.4"},
		{Axis{Percent: true}, []float64{0.1, 0.93}, "0 % 20 % 40 % 60 % 80 %"},
		{Axis{}, []float64{-3, 3}, "-2 0 2"},
		{Axis{Log: true}, []float64{3, 70}, "5 10 20 50"},
		{Axis{Log: true}, []float64{0.5, 2000}, "1 10 100 1000"},
		{Axis{Log: true, Ticks: []float64{1, 2, 4, 8}}, []float64{1, 4}, "1 2 4"},
		{Axis{Log: true}, []float64{0, -1, math.NaN()}, "1 2"},
	} {
		s := newScale(&c.axis, c.data, 0, 100)
		var got []string
		for _, v := range s.ticks {
			got = append(got, c.axis.number(v))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v of %v: %v, want %s", c.axis, c.data, got, c.want)
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, start := range map[string]string{"a.svg": "<svg", "a.PNG": "\x89PNG"} {
		if err := example().Write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(data), start) {
			t.Errorf("%s: %.8q, %v", name, data, err)
		}
	}
	if err := example().Write("a.pdf"); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}

// TestGlyphs checks that every ASCII character has an outline and a width.
func TestGlyphs(t *testing.T) {
	t.Parallel()
	for r := ' '; r <= '~'; r++ {
		if g, ok := glyphs()[r]; !ok || g.advance <= 0 || r != ' ' && len(g.outlines) == 0 {
			t.Errorf("%q: %+v", r, g)
		}
	}
	for _, line := range []string{"65", "65 1 L 1 2", "65 1 M 1", "65 1 X 1 2", "a 1"} {
		if _, _, err := parseGlyph(strings.Fields(line)); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}
