//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

// writeJSON writes one JSON document and a line end.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// A rowWriter streams a JSON array of rows of numbers: with fifty thousand
// logits per row, there are too many to collect first.
type rowWriter struct {
	w    *bufio.Writer
	rows int
	buf  []byte
}

func newRowWriter(w io.Writer) *rowWriter { return &rowWriter{w: bufio.NewWriterSize(w, 1<<16)} }

// row adds one row. JSON cannot represent NaN and infinities.
func (r *rowWriter) row(v []float32) error {
	r.buf = r.buf[:0]
	if r.rows > 0 {
		r.buf = append(r.buf, ',')
	}
	r.buf = append(r.buf, '[')
	for i, x := range v {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("row %d, column %d is %v; the weights or the input are damaged", r.rows, i, x)
		}
		if i > 0 {
			r.buf = append(r.buf, ',')
		}
		r.buf = strconv.AppendFloat(r.buf, float64(x), 'g', -1, 32)
	}
	r.rows++
	_, err := r.w.Write(append(r.buf, ']'))
	return err
}

// isTerminal reports whether a writer is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
