package main

import (
	"fmt"
	"slices"
)

// A timeline is the output of tools/simulate/serving --timeline.
type timeline struct {
	PageRows int `json:"page_rows"`
	Pages    int `json:"pages"`
	Requests []struct {
		At     float64 `json:"at_ms"`
		Prompt int     `json:"prompt"`
		Output int     `json:"output"`
	} `json:"requests"`
	Steps []timelineStep `json:"steps"`
}

type timelineStep struct {
	At      float64        `json:"at_ms"`
	Took    float64        `json:"took_ms"`
	Parts   []timelinePart `json:"parts"`
	Waiting []int          `json:"waiting"`
	Used    int            `json:"used_pages"`
	Kept    int            `json:"kept_pages"`
}

type timelinePart struct {
	Request int  `json:"request"`
	Tokens  int  `json:"tokens"`
	Cached  int  `json:"cached"`
	Decode  bool `json:"decode"`
	Pages   int  `json:"pages"`
}

// tokens returns a step's prompt tokens and all its tokens.
func (s *timelineStep) tokens() (prompts, all int) {
	for _, p := range s.Parts {
		all += p.Tokens
		if !p.Decode {
			prompts += p.Tokens
		}
	}
	return prompts, all
}

// Coordinates of the serving picture.
const (
	servingLeft = 190.0
	servingTop  = 98.0
	rowStep     = 34.0
	cellHeight  = 24.0
)

// A servingPicture draws a timeline with steps as columns.
type servingPicture struct {
	*picture
	timeline
	width float64 // of a column
}

func (p *servingPicture) column(i int) float64 { return servingLeft + p.width*float64(i) }

// serving draws prefill and decode of several requests, and the KV cache pages.
func serving() ([]byte, error) {
	var t timeline
	if err := readData("timeline.json", &t); err != nil {
		return nil, err
	}
	most, mixed, cached := 0, 0, 0
	for i := range t.Steps {
		prompts, all := t.Steps[i].tokens()
		if most = max(most, t.Steps[i].Used); prompts > 0 && prompts < all {
			mixed++
		}
		for _, q := range t.Steps[i].Parts {
			cached += q.Cached
		}
	}
	desc := fmt.Sprintf("%d requests in %d steps under the engine's scheduling policy. %d steps hold chunks of a prompt beside tokens of requests that decode. At most %d of %d pages are in use; the last prompt takes %d tokens from the prefix cache.",
		len(t.Requests), len(t.Steps), mixed, most, t.Pages, cached)
	pages := servingTop + rowStep*float64(len(t.Requests)) + 112
	p := &servingPicture{newPicture(pages+124, "Serving: chunked prefill beside decode", desc), t, (780 - servingLeft) / float64(len(t.Steps))}
	p.head("Chunked prefill beside decode, over a paged KV cache", "Each column is a step. Numbers are the tokens that a request computes in it.")
	p.legend()
	for i := range t.Requests {
		p.request(i)
	}
	p.loads(servingTop + rowStep*float64(len(t.Requests)) + 12)
	p.pages(pages)
	return p.bytes(), nil
}

func (p *servingPicture) legend() {
	x, y := servingLeft, 68.0
	for _, key := range []struct{ class, edge, name string }{
		{"f-w2", "s-c2", "prefill: a chunk of the prompt"}, {"f-w1", "s-c1", "decode: one token"},
	} {
		p.rect(x, y, 14, 12, 2, key.class)
		p.rect(x, y, 14, 12, 2, key.edge)
		p.text(x+20, y+10.5, 12, "f-ink", key.name)
		x += 34 + 6.6*float64(len(key.name))
	}
}

// request draws the row of a request.
func (p *servingPicture) request(i int) {
	y := servingTop + rowStep*float64(i)
	q := p.Requests[i]
	p.text(20, y+10, 12.5, "f-ink bold", fmt.Sprintf("request %d", i+1))
	p.text(20, y+24, 11.5, "f-soft", fmt.Sprintf("%d prompt + %d answer", q.Prompt, q.Output))
	p.line(servingLeft, y+cellHeight/2, 780, y+cellHeight/2, 1, "s-grid")
	began := false
	for at, s := range p.Steps {
		k := slices.IndexFunc(s.Parts, func(part timelinePart) bool { return part.Request == i })
		switch {
		case k >= 0:
			p.cell(at, y, s.Parts[k])
			began = true
		case began && slices.Contains(s.Waiting, i), !began && q.At <= s.At && slices.Contains(s.Waiting, i):
			p.block(at, y, cellHeight, "f-page", "s-border")
		}
	}
}

// cell draws a request's part of a step.
func (p *servingPicture) cell(at int, y float64, part timelinePart) {
	fill, edge := "f-w2", "s-c2"
	if part.Decode {
		fill, edge = "f-w1", "s-c1"
	}
	if part.Cached > 0 {
		p.rect(p.column(at)-188, y+2, 184, cellHeight-4, 3, "f-page")
		p.end(p.column(at)-6, y+16.5, 11.5, "f-c3 bold", fmt.Sprintf("%d from the prefix cache", part.Cached))
	}
	p.block(at, y, cellHeight, fill, edge)
	size := 10.5
	if part.Tokens > 99 {
		size = 9
	}
	p.middle(p.column(at)+p.width/2, y+16, size, "f-ink", fmt.Sprint(part.Tokens))
}

func (p *servingPicture) block(at int, y, h float64, fill, edge string) {
	p.rect(p.column(at)+1, y, p.width-2, h, 3, fill)
	p.rect(p.column(at)+1, y, p.width-2, h, 3, edge)
}

// loads draws the tokens and the duration of each step.
func (p *servingPicture) loads(y float64) {
	const height = 58.0
	most := 0
	for i := range p.Steps {
		_, all := p.Steps[i].tokens()
		most = max(most, all)
	}
	p.text(20, y+height-18, 12.5, "f-ink bold", "step")
	p.text(20, y+height-4, 11.5, "f-soft", "tokens, and its time in ms")
	scale := (height - 14) / float64(most)
	for i, s := range p.Steps {
		prompts, all := s.tokens()
		x, h := p.column(i)+3, scale*float64(all)
		p.rect(x, y+height-h, p.width-6, h, 1, "f-c1")
		if prompts > 0 {
			p.rect(x, y+height-h, p.width-6, scale*float64(prompts), 1, "f-c2")
		}
		if all > 1 {
			p.middle(p.column(i)+p.width/2, y+height-h-4, 10.5, "f-ink", fmt.Sprint(all))
		}
		p.middle(p.column(i)+p.width/2, y+height+15, 10.5, "f-soft", fmt.Sprintf("%.0f", s.Took))
	}
	p.line(servingLeft, y+height, 780, y+height, 1, "s-border")
}

// pages draws a square for each page in use.
func (p *servingPicture) pages(y float64) {
	const height = 92.0
	p.text(20, y+18, 12.5, "f-ink bold", "KV cache")
	p.text(20, y+33, 11.5, "f-soft", fmt.Sprintf("pages of %d tokens", p.PageRows))
	most := 0
	for _, s := range p.Steps {
		most = max(most, s.Used+s.Kept)
	}
	side := height / float64(most)
	for i, s := range p.Steps {
		for k := range s.Used + s.Kept {
			fill, edge := "f-w1", "s-c1"
			if k >= s.Used {
				fill, edge = "f-w3", "s-c3"
			}
			p.rect(p.column(i)+2.5, y+height-side*float64(k+1)+1, p.width-5, side-2, 1.5, fill)
			p.rect(p.column(i)+2.5, y+height-side*float64(k+1)+1, p.width-5, side-2, 1.5, edge)
		}
	}
	p.keys(y + 50)
	p.line(servingLeft, y+height+1, 780, y+height+1, 1, "s-border")
	p.text(servingLeft, y+height+16, 11.5, "f-soft", fmt.Sprintf("%d steps, %.0f ms in all", len(p.Steps), p.duration()))
}

// duration returns the end of the last step.
func (p *servingPicture) duration() float64 {
	last := p.Steps[len(p.Steps)-1]
	return last.At + last.Took
}

func (p *servingPicture) keys(y float64) {
	for i, key := range []struct{ fill, edge, name string }{{"f-w1", "s-c1", "in use"}, {"f-w3", "s-c3", "prefix cache"}} {
		at := y + 17*float64(i)
		p.rect(20, at, 12, 11, 1.5, key.fill)
		p.rect(20, at, 12, 11, 1.5, key.edge)
		p.text(38, at+10, 11.5, "f-ink", key.name)
	}
}
