package main

import (
	"fmt"
	"math"
)

// A bar is a labeled value.
type bar struct {
	name  string
	value float64
	tint  string
}

// A barGroup is a group of bars with one unit.
type barGroup struct {
	title, note, unit string
	bars              []bar
}

// bars draws the README's chart: tokens per second of one client, and the time
// to first token of one and of eight.
func bars() ([]byte, error) {
	var d serveData
	if err := readData("serve.json", &d); err != nil {
		return nil, err
	}
	groups, err := barGroups(&d)
	if err != nil {
		return nil, err
	}
	desc := ""
	for _, g := range groups {
		desc += g.title + ":"
		for i, b := range g.bars {
			if i > 0 {
				desc += ","
			}
			desc += fmt.Sprintf(" %s %.0f %s", b.name, b.value, g.unit)
		}
		desc += ". "
	}
	rounds := fmt.Sprintf("Medians of %d interleaved rounds.", len(d.Default[0].TokS))
	p := newPicture(302, "iflowc and llama.cpp on two CPU cores", desc+rounds)
	p.head("SmolLM2-135M-Instruct in 4 bits on two CPU cores", d.Machine.CPU+"; llama.cpp: the same model as Q4_0. "+rounds+" "+d.Date+".")
	y := 78.0
	for _, g := range groups {
		y = p.group(y, g) + 22
	}
	return p.bytes(), nil
}

func barGroups(d *serveData) ([]barGroup, error) {
	value := func(rows []serveRow, service string, clients int, tokens bool) (float64, error) {
		r, err := at(rows, service, clients)
		if err != nil {
			return 0, err
		}
		if tokens {
			return median(r.TokS), nil
		}
		return median(r.TTFT), nil
	}
	groups := []barGroup{
		{title: "Output, 1 client", note: "more is better", unit: "tok/s"},
		{title: "Time to first token, 1 client", note: "less is better", unit: "ms"},
		{title: "Time to first token, 8 clients", note: "less is better", unit: "ms"},
	}
	for i, c := range []struct {
		clients int
		tokens  bool
	}{{1, true}, {1, false}, {8, false}} {
		lines := []struct {
			rows                []serveRow
			service, name, tint string
		}{{d.Default, "iflowc", "iflowc", "c1"}, {d.Default, "llama.cpp", "llama.cpp", "c2"}}
		if c.tokens {
			lines = append(lines[:1:1], struct {
				rows                []serveRow
				service, name, tint string
			}{d.Plain, "iflowc", "iflowc, no speculation", "c3"}, lines[1])
		}
		for _, l := range lines {
			v, err := value(l.rows, l.service, c.clients, c.tokens)
			if err != nil {
				return nil, err
			}
			groups[i].bars = append(groups[i].bars, bar{l.name, v, l.tint})
		}
	}
	return groups, nil
}

// group draws a group's bars to one scale and returns the y coordinate of its
// end.
func (p *picture) group(y float64, g barGroup) float64 {
	const left, width, step, height = 392.0, 300.0, 24.0, 17.0
	most := 0.0
	for _, b := range g.bars {
		most = max(most, b.value)
	}
	p.text(20, y+13, 13.5, "f-ink bold", g.title)
	p.text(20, y+30, 12, "f-soft", g.unit+", "+g.note)
	for _, b := range g.bars {
		p.end(left-10, y+13, 12.5, "f-ink", b.name)
		length := width * b.value / most
		p.rect(left, y, length, height, 3, "f-"+b.tint)
		p.text(left+length+8, y+13, 12.5, "f-ink bold", thousands(int(math.Round(b.value)))+" "+g.unit)
		y += step
	}
	return y
}
