// Package plot draws figures of measurements, as SVG and PNG: panels of curves
// with the intervals they were measured in. Both forms are drawn by the same
// layout, and the same figure gives the same bytes.
package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
)

// A Figure is a title over panels, which fill rows from the left.
type Figure struct {
	Title   string
	Note    string // a line below the title
	Panels  []Panel
	Columns int // panels in a row; 0: three at most

	PanelWidth, PanelHeight float64 // units of each panel; 0: 360 by 262
}

// A Panel is one pair of axes with its curves.
type Panel struct {
	Title  string
	X, Y   Axis
	Series []Series
	Marks  []Mark
}

// An Axis says what a direction means. Its ends come from the data unless Min
// and Max say otherwise.
type Axis struct {
	Label    string
	Log      bool
	Min, Max float64   // both 0: by the data; on a linear axis that has no negative values from 0
	Ticks    []float64 // where to put numbers; nil: where they are round
	Percent  bool      // numbers are shares, written in per cent
}

// A Series is a curve: Y over X, and for each point the interval from Low to
// High, or none when they are nil. Points whose Y is not positive are left out
// of logarithmic axes.
type Series struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Points    bool // mark each point, with its interval as a bar instead of a band
	Steps     bool // constant from each point to the next
	Dashed    bool
	Bare      bool    // points without a line between them
	Marker    Marker  // of its points
	Color     int     // 1 + its place in the palette, negative: gray; 0: by the order of the series
	Labels    []Label // beside the points, none or one for each
}

// A Label is a text beside a point, by so many units away from it.
type Label struct {
	Text   string
	X, Y   float64
	Anchor float64 // which share of it is left of its place: 0, 0.5 or 1
}

// A Marker is the shape of points.
type Marker uint8

// The markers.
const (
	Disc Marker = iota
	Square
	Triangle
)

// A Mark is a vertical line at an X that means something.
type Mark struct {
	X     float64
	Label string
}

// Formats are the endings of files that Write knows.
const Formats = ".svg or .png"

// ErrFormat is what Write and Check give for other endings.
var ErrFormat = errors.New("a plot is a file that ends in " + Formats)

// Check says whether a plot can be written to a file of that name, before work
// is done for it.
func Check(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg", ".png":
		return nil
	}
	return fmt.Errorf("%s: %w", path, ErrFormat)
}

// Write draws the figure into a file, in the format that its name ends in.
func (f *Figure) Write(path string) error {
	if err := Check(path); err != nil {
		return err
	}
	data := f.SVG()
	if strings.EqualFold(filepath.Ext(path), ".png") {
		var err error
		if data, err = f.PNG(printScale); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, data, 0o644)
}

// printScale is the pixels to a unit of files: a figure of one column of a
// paper then has more than 300 dots to the inch.
const printScale = 3

// SVG draws the figure as SVG.
func (f *Figure) SVG() []byte {
	w, h := f.size()
	c := newSVG(w, h)
	f.draw(c)
	return c.bytes()
}

// PNG draws the figure with so many pixels to a unit; a panel is 360 units wide.
func (f *Figure) PNG(scale float64) ([]byte, error) {
	w, h := f.size()
	if pixels := w * h * scale * scale; !(pixels <= maxPixels) {
		return nil, fmt.Errorf("a picture of %.0f by %.0f pixels is larger than %d million; draw fewer panels, or SVG", w*scale, h*scale, int(maxPixels/1e6))
	}
	c := newRaster(w, h, scale)
	f.draw(c)
	var b bytes.Buffer
	err := png.Encode(&b, c.image)
	return b.Bytes(), err
}

// maxPixels bounds the memory of a picture: 4 bytes each.
const maxPixels = 200e6
