package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// TestContrast checks the contrast of text in every text tint on every background, in
// both themes.
func TestContrast(t *testing.T) {
	t.Parallel()
	grounds, washes := []string{"page", "panel", "box"}, []string{"w1", "w2", "w3", "w4", "w5"}
	tint := map[string]Tint{}
	for _, x := range Tints {
		tint[x.Name] = x
	}
	check := func(text string, grounds []string) {
		for _, g := range grounds {
			for _, pair := range [][2]string{{tint[text].Light, tint[g].Light}, {tint[text].Dark, tint[g].Dark}} {
				a, b := luminance(t, pair[0]), luminance(t, pair[1])
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s on %s (%s on %s): contrast %.2f", text, g, pair[0], pair[1], ratio)
				}
			}
		}
	}
	for _, text := range []string{"ink", "soft", "c1", "c2", "c3", "c4", "c5", "c6"} {
		check(text, grounds)
	}
	check("ink", washes)
}

// TestThemed checks that a themed figure is XML with a title and a description, and has
// colors only in its style sheet.
func TestThemed(t *testing.T) {
	t.Parallel()
	data := example().Themed("what <it> shows")
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	text := string(data)
	for _, want := range []string{"<title id=\"title\">Time &lt;of&gt; a matmul</title>", "<desc id=\"desc\">what &lt;it&gt; shows</desc>", "prefers-color-scheme: dark"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if _, drawn, _ := strings.Cut(text, "</style>"); strings.Contains(drawn, "#") {
		t.Error("a color outside the style sheet")
	}
}
