package main

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/plot"
	"github.com/iflowc/iflowc/tools/check/archtest"
)

// Sizes in pixels.
const (
	boxWidth = 204
	nameLine = 37 // from a box's upper edge to the baseline below its name
	textLine = 15
	inset    = 8 // below the last baseline
	gapX     = 22
	gapY     = 46
	margin   = 20
	heading  = 52 // above the boxes of a panel
	footing  = 18 // below them
)

// A box is a group in the picture.
type box struct {
	archtest.Group
	layer  int // of its panel, 0 at the bottom
	x, y   int
	height int // of all boxes of its row
}

// A panel is one half of the picture.
type panel struct {
	title  string
	boxes  []*box
	layers int // on the longest path
	rows   [][]*box
}

// draw draws the picture: the compiler above the runtime, higher layers above
// lower ones, and an arrow for each import between groups. Arrows that others
// imply are faint.
func draw() string {
	compiler, runtime := &panel{title: "The compiler"}, &panel{title: "The runtime, linked into every binary"}
	for _, g := range archtest.Groups {
		switch {
		case g.Holds == "":
		case strings.HasPrefix(g.Folder, "runtime/"):
			runtime.boxes = append(runtime.boxes, &box{Group: g})
		default:
			compiler.boxes = append(compiler.boxes, &box{Group: g})
		}
	}
	panels := []*panel{compiler, runtime}
	widest := 0
	for _, p := range panels {
		p.layOut()
		for _, row := range p.rows {
			widest = max(widest, len(row))
		}
	}
	width := widest*(boxWidth+gapX) - gapX + 4*margin
	var back, front strings.Builder
	y := margin
	for _, p := range panels {
		height := p.place(width/2, y+heading) + footing - y
		fmt.Fprintf(&back, `<rect class="panel" x="%d" y="%d" width="%d" height="%d" rx="8"/>`+"\n", margin, y, width-2*margin, height)
		fmt.Fprintf(&front, `<text class="f-ink bold title" x="%d" y="%d" font-size="14">%s: %s</text>`+"\n", 2*margin, y+28, html.EscapeString(p.title), p.count())
		for _, b := range p.boxes {
			b.write(&front)
		}
		y += height + margin
	}
	arrows(&back, slices.Concat(compiler.boxes, runtime.boxes))
	desc := fmt.Sprintf("Packages import downward only. %s: %s. %s: %s. Faint arrows are implied by others.", compiler.title, compiler.count(), runtime.title, runtime.count())
	return plot.Head(float64(width), float64(y), "Groups of packages and their imports", desc) + style + back.String() + front.String() + "</svg>\n"
}

// layOut assigns layers to the boxes of a panel. Boxes with a choice go to the
// layer with the fewest boxes.
func (p *panel) layOut() {
	for _, b := range p.boxes {
		for _, m := range b.May {
			if below := find(p.boxes, m); below != nil {
				b.layer = max(b.layer, below.layer+1)
			}
		}
		p.layers = max(p.layers, b.layer+1)
	}
	count := make([]int, p.layers)
	for _, b := range p.boxes {
		count[b.layer]++
	}
	for _, b := range slices.Backward(p.boxes) {
		highest := p.layers
		for _, above := range p.boxes {
			if slices.Contains(above.May, b.Folder) {
				highest = min(highest, above.layer)
			}
		}
		for layer := b.layer + 1; layer < highest; layer++ {
			if count[layer] < count[b.layer]-1 {
				count[b.layer]--
				count[layer]++
				b.layer = layer
			}
		}
	}
	p.rows = make([][]*box, p.layers)
	for _, b := range p.boxes {
		p.rows[b.layer] = append(p.rows[b.layer], b)
	}
}

// place centers each row, the highest layer at y, and returns the lower end of
// the lowest. A box is near its importers, and as high as the longest text of
// its row needs.
func (p *panel) place(middle, y int) int {
	for layer, row := range slices.Backward(p.rows) {
		want := map[*box]int{}
		for _, b := range row {
			n, sum := 0, 0
			for _, above := range p.boxes {
				if above.layer > layer && slices.Contains(above.May, b.Folder) {
					n, sum = n+1, sum+above.x
				}
			}
			if want[b] = middle; n > 0 {
				want[b] = sum / n
			}
		}
		slices.SortStableFunc(row, func(a, b *box) int { return want[a] - want[b] })
		x, lines := middle-(len(row)*(boxWidth+gapX)-gapX)/2, 0
		for _, b := range row {
			lines = max(lines, 1+strings.Count(b.Holds, "\n"))
		}
		height := nameLine + (lines-1)*textLine + inset
		for _, b := range row {
			b.x, b.y, b.height = x, y, height
			x += boxWidth + gapX
		}
		y += height + gapY
	}
	return y - gapY
}

// count describes the numbers of groups, layers and arrows of the panel.
func (p *panel) count() string {
	n := 0
	for _, b := range p.boxes {
		for _, m := range b.May {
			if find(p.boxes, m) != nil {
				n++
			}
		}
	}
	return fmt.Sprintf("%d groups, %d layers, %d arrows", len(p.boxes), p.layers, n)
}

func find(boxes []*box, folder string) *box {
	i := slices.IndexFunc(boxes, func(b *box) bool { return b.Folder == folder })
	if i < 0 {
		return nil
	}
	return boxes[i]
}

// arrows draws the imports, first those that others imply.
func arrows(out *strings.Builder, boxes []*box) {
	for _, implied := range []bool{true, false} {
		for _, from := range boxes {
			for _, m := range from.May {
				if to := find(boxes, m); to != nil && reaches(boxes, from, to) == implied {
					arrow(out, from, to, implied)
				}
			}
		}
	}
}

// reaches reports whether from also imports to through another group.
func reaches(boxes []*box, from, to *box) bool {
	return slices.ContainsFunc(from.May, func(m string) bool {
		via := find(boxes, m)
		return via != nil && via != to && (slices.Contains(via.May, to.Folder) || reaches(boxes, via, to))
	})
}

func arrow(out *strings.Builder, from, to *box, implied bool) {
	class, head := "s-c1 arrow", "head"
	if implied {
		class, head = "s-border", "faint"
	}
	x0, y0, x1, y1 := from.x+boxWidth/2, from.y+from.height, to.x+boxWidth/2, to.y-6
	bend := max((y1-y0)/2, 30)
	fmt.Fprintf(out, `<path class="%s" marker-end="url(#%s)" d="M%d %d C%d %d %d %d %d %d"/>`+"\n", class, head, x0, y0, x0, y0+bend, x1, y1-bend, x1, y1)
}

func (b *box) write(out *strings.Builder) {
	fmt.Fprintf(out, `<rect class="box edge" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", b.x, b.y, boxWidth, b.height)
	fmt.Fprintf(out, `<text class="f-ink bold" x="%d" y="%d" font-size="14">%s</text>`+"\n", b.x+12, b.y+20, html.EscapeString(b.Folder))
	for i, line := range strings.Split(b.Holds, "\n") {
		fmt.Fprintf(out, `<text class="f-soft" x="%d" y="%d" font-size="11.5">%s</text>`+"\n", b.x+12, b.y+nameLine+textLine*i, html.EscapeString(line))
	}
}

// style returns additional styles: titles need to stand out from the arrows
// behind them.
const style = `<style>.arrow { stroke-width: 1.5 } .title { paint-order: stroke; stroke: #f6f8fa; stroke: var(--panel); stroke-width: 6px; stroke-linejoin: round }
.edge { stroke: #59636e; stroke: var(--soft) }</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="f-c1" d="M0 0 L8 4 L0 8 z"/></marker>
<marker id="faint" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="f-border" d="M0 0 L8 4 L0 8 z"/></marker></defs>
`
