package templates

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A format is the layout of the codes of some block types in a tile-block: a
// template for the C code that unpacks one tile-block, shared by all kernels.
type format struct {
	doc  string
	bits map[tensor.DType]float64 // stored bits per code
	unit int                      // stored vectors that are decoded together
	pick string                   // C expression of code vector j alone, or empty
	body *template.Template

	levels bool // body and pick find the levels of a trellis-coded type
}

type formatHeader struct {
	Doc   string   `yaml:"doc"`
	Types []string `yaml:"types"`
	Bits  float64  `yaml:"bits"`
	Unit  int      `yaml:"unit"` // stored vectors that are decoded together
	Pick  string   `yaml:"pick"` // C expression of code vector j of the tile-block at w

	Levels bool `yaml:"levels"` // USE and Pick are levels of a trellis-coded type
}

// decode returns the C code that decodes the n stored vectors of a tile-block, as
// decodeVectors, and the C expression of one code vector, or "". The values of
// trellis-coded types depend on three codes each. If the format's file does not find them,
// vectors from `first` on are used as soon as they are known, so that few are kept, and
// then those before it.
func (f *format) decode(dt tensor.DType, n, first int) (pick, code string, err error) {
	code, err = f.decodeVectors(n)
	if err != nil || f.levels || tensor.TrellisOf(dt) == nil {
		return f.pick, code, err
	}
	code = uses.ReplaceAllStringFunc(code+"\n", func(call string) string {
		m := uses.FindStringSubmatch(call)
		text := fmt.Sprintf("v%s = %s;\n", m[1], m[2])
		if j, _ := strconv.Atoi(m[1]); j >= first {
			text += useLevel(j)
		}
		return text
	})
	code += "    v8 = ifl_turn(v6), v9 = ifl_turn(v7);\n"
	for j := range first {
		code += useLevel(j)
	}
	return "", code, nil
}

// useLevel returns the use of vector j, which follows vectors j−2 and j−1 modulo 10.
func useLevel(j int) string {
	return fmt.Sprintf("    USE(%d, ifl_levels(v%d, v%d, v%d));\n", j, j, (j+9)%10, (j+8)%10)
}

// uses matches a call of USE.
var uses = regexp.MustCompile(`(?s)USE\((\d+), (.*?)\);\n`)

// formatArgs is the data of a format's template.
type formatArgs struct {
	Vectors int // 64-byte vectors per tile-block
}

func loadFormats(fsys fs.FS) (map[tensor.DType]*format, error) {
	names, err := fs.Glob(fsys, "cpu/formats/*.c.tmpl")
	if err != nil {
		return nil, err
	}
	formats := map[tensor.DType]*format{}
	for _, name := range names {
		var h formatHeader
		t, types, err := openTemplate(fsys, name, &h, &h.Types)
		if err != nil {
			return nil, err
		}
		f := &format{doc: strings.TrimSpace(h.Doc), unit: h.Unit, pick: h.Pick, body: t, levels: h.Levels, bits: map[tensor.DType]float64{}}
		for _, dt := range types {
			if formats[dt] != nil {
				return nil, fmt.Errorf("template %s: type %s has a second format file", name, dt)
			}
			f.bits[dt], formats[dt] = h.Bits, f
		}
	}
	return formats, nil
}

// vectors returns the number of 64-byte vectors that store the 16·Block codes of a
// tile-block.
func (f *format) vectors(dt tensor.DType) int {
	return int(16 * float64(dt.Block()) * f.bits[dt] / 8 / 64)
}

// decodeVectors returns the C code that decodes n stored vectors of the tile-block
// at w and calls USE(j, codes) for every code vector j.
func (f *format) decodeVectors(n int) (string, error) {
	var b strings.Builder
	if err := f.body.Execute(&b, formatArgs{n}); err != nil {
		return "", fmt.Errorf("format %s: %w", f.body.Name(), err)
	}
	return indent(b.String()), nil
}

// indent indents statements for the body of a loop.
func indent(text string) string {
	var lines []string
	whole := true // the previous line ended its statement
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		margin := "    "
		if !whole {
			margin += "     "
		}
		lines = append(lines, margin+line)
		whole = strings.HasSuffix(line, ";")
	}
	return strings.Join(lines, "\n")
}
