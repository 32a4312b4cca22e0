package tune

import (
	"context"
	"fmt"
	"time"
)

// A Shape is a matmul to be measured: y[rows, N] = x[rows, K]·wᵀ.
type Shape struct {
	N, K       int
	DType      string // weight type, as manifests name it
	Act        int    // ifl_act_kind of the packed activations
	PanelBytes int64  // of 16 rows of packed weights
	Candidates []Candidate
}

// A Candidate is an implementation that is legal for a shape.
type Candidate struct {
	Impl   string
	Symbol string // its C function
	Tile   int    // rows of a tile of packed activations
}

// DefaultRows are the row counts measured: every one up to 64, where tiles
// begin and end, and then what prefill and large batches use.
func DefaultRows() []int {
	var rows []int
	for r := 1; r <= 64; r++ {
		rows = append(rows, r)
	}
	return append(rows, 96, 128, 192, 256, 384, 512)
}

// A Timer times candidates: Driver, or a model of one in tests.
type Timer interface {
	// Time runs candidates of a shape interleaved and gives for each of the
	// shape's candidates a time in seconds a block, none for those not asked
	// for. clean is false when something else disturbed all of them.
	Time(s Shape, rows, blocks int, which []int) (times [][]float64, clean bool, err error)
}

// Options steer a measurement.
type Options struct {
	Rows     []int                              // ascending; nil: DefaultRows
	Budget   time.Duration                      // after the first round, stop when so much has passed
	Progress func(done, total int, what string) // may be nil
}

// Stages of a measurement.
const (
	leastBlocks = 5   // before a cell may count as settled
	mostBlocks  = 41  // of a cell
	outclassed  = 1.5 // an implementation so much slower at `losses` row counts in a row is dropped
	losses      = 3
	batchTime   = 3 * time.Millisecond // of cheap cells in one go
)

// A run is a measurement in progress.
type run struct {
	timer  Timer
	shapes []Shape
	opt    Options
	cells  [][]Cell // [shape][row count]
	end    time.Time
	done   int
}

// Measure times every candidate of every shape. The first round visits every
// cell; further rounds, until the budget is spent, those whose winner is not
// yet sure. So each cell's samples are spread over the whole time, and a
// machine that changes its pace meanwhile changes it for all.
func Measure(ctx context.Context, t Timer, shapes []Shape, opt Options) ([][]Cell, error) {
	if opt.Rows == nil {
		opt.Rows = DefaultRows()
	}
	r := &run{timer: t, shapes: shapes, opt: opt, cells: make([][]Cell, len(shapes)), end: time.Now().Add(opt.Budget)}
	for i, s := range shapes {
		for _, rows := range opt.Rows {
			r.cells[i] = append(r.cells[i], Cell{Rows: rows, Blocks: make([][]float64, len(s.Candidates))})
		}
	}
	if err := r.first(ctx); err != nil {
		return nil, err
	}
	for {
		more, err := r.again(ctx)
		if err != nil {
			return nil, err
		}
		if !more {
			return r.cells, nil
		}
	}
}

// first gives each cell its first samples and drops candidates that others
// have outclassed: those for fewer rows than the fastest is for, because more
// rows make them only worse.
func (r *run) first(ctx context.Context) error {
	for i, s := range r.shapes {
		lost := make([]int, len(s.Candidates))
		for j := range r.cells[i] {
			c := &r.cells[i][j]
			var which []int
			for k := range s.Candidates {
				if lost[k] < losses {
					which = append(which, k)
				}
			}
			if err := r.sample(ctx, i, c, which, 1); err != nil {
				return err
			}
			best := c.best()
			for k := range s.Candidates {
				if !c.rough && k < best && c.time(k) > outclassed*c.time(best) {
					lost[k]++
				} else if lost[k] < losses {
					lost[k] = 0
				}
			}
		}
	}
	return nil
}

// again gives cells that are not settled more samples; false when all are or
// the budget is spent.
func (r *run) again(ctx context.Context) (more bool, err error) {
	for i := range r.shapes {
		for j := range r.cells[i] {
			c := &r.cells[i][j]
			which := c.measured()
			if n := len(c.Blocks[which[0]]); n >= mostBlocks || n >= leastBlocks && c.settled(which) {
				continue
			}
			if time.Now().After(r.end) {
				return false, nil
			}
			once := 0.0
			for _, k := range which {
				once += 2 * c.time(k)
			}
			blocks := max(1, min(8, int(batchTime.Seconds()/once)))
			if err := r.sample(ctx, i, c, which, blocks); err != nil {
				return false, err
			}
			more = true
		}
	}
	return more, nil
}

// measured lists the candidates that have samples.
func (c *Cell) measured() (which []int) {
	for k, b := range c.Blocks {
		if len(b) > 0 {
			which = append(which, k)
		}
	}
	return which
}

// settled says whether the fastest candidate is surely so, or equals those
// that might be faster.
func (c *Cell) settled(which []int) bool {
	best := c.best()
	for _, k := range which {
		if k == best {
			continue
		}
		if _, settled := c.better(best, k); !settled {
			return false
		}
	}
	return true
}

func (r *run) sample(ctx context.Context, shape int, c *Cell, which []int, blocks int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	times, clean, err := r.timer.Time(r.shapes[shape], c.Rows, blocks, which)
	if err != nil {
		return err
	}
	switch first := len(c.measured()) == 0; {
	case clean && c.rough:
		c.Blocks, c.rough = make([][]float64, len(c.Blocks)), false
	case !clean && !first && !c.rough:
		times = nil // better samples are there
	case first:
		c.rough = !clean
	}
	for k := range times {
		c.Blocks[k] = append(c.Blocks[k], times[k]...)
	}
	r.done++
	if r.opt.Progress != nil {
		total := len(r.shapes) * len(r.opt.Rows)
		what := "more samples where it is not decided"
		if r.done <= total {
			what = r.shapes[shape].String()
		}
		r.opt.Progress(min(r.done, total), total, what)
	}
	return nil
}

// String names the shape: "[960, 576] q4_b64".
func (s Shape) String() string { return fmt.Sprintf("[%d, %d] %s", s.N, s.K, s.DType) }
