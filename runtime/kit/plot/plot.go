// Package plot draws figures of measurements as SVG and PNG: panels of curves with
// their intervals. Both formats use the same layout, and the output is deterministic.
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

// A Figure is a title above panels, which are arranged in rows from the left.
type Figure struct {
	Title   string
	Note    string // a line below the title
	Panels  []Panel
	Columns int // panels per row; 0: up to three

	PanelWidth, PanelHeight float64 // size of each panel in units; 0: 360 by 262
}

// A Panel is a pair of axes with curves.
type Panel struct {
	Title  string
	X, Y   Axis
	Series []Series
	Marks  []Mark
}

// An Axis describes an axis. Its range is that of the data unless Min and Max are set.
type Axis struct {
	Label    string
	Log      bool
	Min, Max float64   // both 0: the range of the data; a linear axis without negative values starts at 0
	Ticks    []float64 // positions of the numbers; nil: round values
	Percent  bool      // format numbers as percentages of 1
}

// A Series is a curve: Y over X with the intervals from Low to High, or none if they
// are nil. Logarithmic axes omit points with a Y that is not positive.
type Series struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Points    bool // draw points, with their intervals as bars instead of a band
	Steps     bool // constant from each point to the next
	Dashed    bool
	Bare      bool    // no line between the points
	Marker    Marker  // shape of the points
	Color     int     // 1 + index in the palette; negative: gray; 0: by the order of the series
	Labels    []Label // labels of the points; nil: none
}

// A Label is a text next to a point, with an offset in units.
type Label struct {
	Text   string
	X, Y   float64
	Anchor float64 // fraction of the text that is left of its position: 0, 0.5 or 1
}

// A Marker is the shape of points.
type Marker uint8

// Markers.
const (
	Disc Marker = iota
	Square
	Triangle
)

// A Mark is a labeled vertical line at X.
type Mark struct {
	X     float64
	Label string
}

// Formats lists the file formats of Write.
const Formats = ".svg or .png"

// ErrFormat is returned by Write and Check for other file extensions.
var ErrFormat = errors.New("the name of a plot must end in " + Formats)

// Check returns ErrFormat if path does not have the extension of a supported format.
func Check(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg", ".png":
		return nil
	}
	return fmt.Errorf("%s: %w", path, ErrFormat)
}

// Write writes the figure to a file in the format of its extension.
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

// printScale is the number of pixels per unit in PNG files: more than 300 dpi at the
// width of a paper's column.
const printScale = 3

// SVG returns the figure as SVG.
func (f *Figure) SVG() []byte {
	w, h := f.size()
	c := newSVG(w, h)
	f.draw(c)
	return c.bytes()
}

// PNG returns the figure as PNG with scale pixels per unit; a panel is 360 units wide.
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

// maxPixels bounds the memory of an image, at 4 bytes per pixel.
const maxPixels = 200e6
