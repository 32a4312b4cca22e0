//go:build unix

package ranks

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// chooses reports whether the rank with the logits chooses tokens of a step.
func chooses(s *device.Step) bool { return slices.Contains(s.Chosen[:s.OutRows], device.Choose) }

// Words for the choice of a row.
const (
	readRow = iota
	greedyRow
	randomRow // choiceWords words follow
)

// choiceWords is the number of words of a choice with a random number.
const choiceWords = 13

// appendChoices appends how the tokens of each row are chosen.
func appendChoices(w []int32, s *device.Step) []int32 {
	for row, c := range s.Choices[:s.OutRows] {
		switch {
		case s.Chosen[row] != device.Choose:
			w = append(w, readRow)
		case c.Temperature == 0:
			w = append(w, greedyRow)
		default:
			w = append(w, randomRow, int32(min(c.TopK, math.MaxInt32)))
			for _, v := range []float64{c.Random, c.Temperature, c.TopP, c.MinP, c.Typical, c.TailFree} {
				b := math.Float64bits(v)
				w = append(w, int32(b), int32(b>>32))
			}
		}
	}
	return w
}

// readChoices reads the choices of a number of rows, and returns the words after them.
func readChoices(s *device.Step, rows int, w []int32) ([]int32, error) {
	for row := range rows {
		if len(w) == 0 {
			return nil, errors.New("a step from rank 0 is truncated")
		}
		kind := w[0]
		w = w[1:]
		c := &s.Choices[row]
		switch *c = (decode.Choice{}); {
		case kind == readRow:
			continue
		case kind == greedyRow:
		case kind == randomRow && len(w) >= choiceWords:
			c.TopK = int(w[0])
			for i, v := range []*float64{&c.Random, &c.Temperature, &c.TopP, &c.MinP, &c.Typical, &c.TailFree} {
				*v = math.Float64frombits(uint64(uint32(w[1+2*i])) | uint64(uint32(w[2+2*i]))<<32)
			}
			w = w[choiceWords:]
		default:
			return nil, errors.New("a step from rank 0 has an invalid choice of a token")
		}
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("a step from rank 0 chooses a token by %w", err)
		}
		s.Chosen[row] = device.Choose
	}
	return w, nil
}

// Pickers choose the tokens of several rows at a time, one on each thread.
type pickers []decode.Picker

// choose chooses the tokens of a step's rows. A row that is not valid is left to rank 0, which
// then reports it.
func (list pickers) choose(m *manifest.Manifest, s *device.Step) {
	g := &m.Graphs[s.Graph]
	at := slices.IndexFunc(g.Outputs, func(o manifest.Output) bool { return o.Name == "logits" && o.Rows == "out_rows" })
	rows := 0
	for row, token := range s.Chosen[:s.OutRows] {
		switch {
		case token != device.Choose:
		case at < 0:
			s.Chosen[row] = device.Read
		default:
			rows++
		}
	}
	if rows == 0 {
		return
	}
	o := &g.Outputs[at]
	var next atomic.Int64
	work := func(p *decode.Picker) {
		for row := int(next.Add(1)) - 1; row < s.OutRows; row = int(next.Add(1)) - 1 {
			if s.Chosen[row] != device.Choose {
				continue
			}
			token, err := p.Pick(s.Out[g.At+at][row*o.Cols:][:min(o.Used, m.Vocab)], s.Choices[row])
			if err != nil {
				token = device.Read
			}
			s.Chosen[row] = token
		}
	}
	var wg sync.WaitGroup
	for i := 1; i < min(rows, len(list)); i++ {
		wg.Go(func() { work(&list[i]) })
	}
	work(&list[0])
	wg.Wait()
}

// tokens are the first message of a step's results: the token of each row, or Read. A step
// without output rows has one word, which tells that the step has ended.
func tokens(s *device.Step) []int32 { return s.Chosen[:max(1, s.OutRows)] }

// checkTokens returns an error if a row has neither a token of the model nor logits.
func checkTokens(s *device.Step, vocab int) error {
	for _, token := range s.Chosen[:s.OutRows] {
		if token < device.Read || int(token) >= vocab {
			return fmt.Errorf("bug: a rank chose token %d of %d", token, vocab)
		}
	}
	return nil
}
