package main

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/tools/check/archtest"
)

// Sizes in pixels.
const (
	boxWidth  = 204
	boxHeight = 60
	gapX      = 22
	gapY      = 46
	margin    = 20
	heading   = 52 // above the boxes of a panel
	footing   = 18 // below them
)

// A box is a group in the picture.
type box struct {
	archtest.Group
	layer int // of its panel, 0 at the bottom
	x, y  int
}

// A panel is one half of the picture.
type panel struct {
	title  string
	boxes  []*box
	layers int // on the longest path
	rows   [][]*box
}

// draw makes the picture: the compiler above the runtime, higher layers above
// lower ones, and an arrow for each import between groups. Arrows that others
// imply are faint.
func draw() string {
	compiler, runtime := &panel{title: "The compiler"}, &panel{title: "The runtime, of which a binary is made"}
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
		height := heading + len(p.rows)*(boxHeight+gapY) - gapY + footing
		fmt.Fprintf(&back, `<rect class="panel" x="%d" y="%d" width="%d" height="%d" rx="10"/>`+"\n", margin, y, width-2*margin, height)
		fmt.Fprintf(&back, `<text class="title" x="%d" y="%d">%s: %s</text>`+"\n", 2*margin, y+28, html.EscapeString(p.title), p.count())
		p.place(width/2, y+heading)
		for _, b := range p.boxes {
			b.write(&front)
		}
		y += height + margin
	}
	arrows(&back, slices.Concat(compiler.boxes, runtime.boxes))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Groups of packages and their imports">`+"\n", width, y, width, y) +
		style + fmt.Sprintf(`<rect class="page" width="%d" height="%d"/>`+"\n", width, y) + back.String() + front.String() + "</svg>\n"
}

// layOut gives the boxes their layers within the panel. Those that may stand
// higher go where the fewest are.
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

// place puts each row around the middle, the highest at the top; a box stands
// near those that import it.
func (p *panel) place(middle, top int) {
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
		x := middle - (len(row)*(boxWidth+gapX)-gapX)/2
		for _, b := range row {
			b.x, b.y = x, top+(len(p.rows)-1-layer)*(boxHeight+gapY)
			x += boxWidth + gapX
		}
	}
}

// count says how many groups, layers and arrows the panel has.
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

// arrows draws the imports, those that others imply first.
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

// reaches says whether from imports to through another group too.
func reaches(boxes []*box, from, to *box) bool {
	return slices.ContainsFunc(from.May, func(m string) bool {
		via := find(boxes, m)
		return via != nil && via != to && (slices.Contains(via.May, to.Folder) || reaches(boxes, via, to))
	})
}

func arrow(out *strings.Builder, from, to *box, implied bool) {
	class := "arrow"
	if implied {
		class = "arrow implied"
	}
	x0, y0, x1, y1 := from.x+boxWidth/2, from.y+boxHeight, to.x+boxWidth/2, to.y-6
	bend := max((y1-y0)/2, 30)
	fmt.Fprintf(out, `<path class="%s" marker-end="url(#head)" d="M%d %d C%d %d %d %d %d %d"/>`+"\n", class, x0, y0, x0, y0+bend, x1, y1-bend, x1, y1)
}

func (b *box) write(out *strings.Builder) {
	fmt.Fprintf(out, `<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", b.x, b.y, boxWidth, boxHeight)
	fmt.Fprintf(out, `<text class="name" x="%d" y="%d">%s</text>`+"\n", b.x+12, b.y+20, html.EscapeString(b.Folder))
	for i, line := range strings.Split(b.Holds, "\n") {
		fmt.Fprintf(out, `<text class="holds" x="%d" y="%d">%s</text>`+"\n", b.x+12, b.y+37+15*i, html.EscapeString(line))
	}
}

// style colors the picture for light and dark pages.
const style = `<style>
.page { fill: #ffffff } .panel { fill: #f6f8fa; stroke: #d0d7de } .box { fill: #ffffff; stroke: #8c959f }
text { font-family: system-ui, sans-serif; fill: #1f2328 } .title { font-size: 14px } .name { font-size: 14px; font-weight: 600 }
.holds { font-size: 11.5px; fill: #59636e } .arrow { fill: none; stroke: #0969da; stroke-width: 1.5 } .implied { stroke: #b6c4d4; stroke-width: 1 }
.head { fill: #0969da }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .panel { fill: #151b23; stroke: #3d444d } .box { fill: #212830; stroke: #656c76 }
text { fill: #f0f6fc } .holds { fill: #9198a1 } .arrow { stroke: #4493f8 } .implied { stroke: #3d4a5c } .head { fill: #4493f8 }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>
`
