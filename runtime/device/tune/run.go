package tune

import (
	"context"
	"fmt"
	"time"
)

// A Shape is a matmul to measure: y[rows, N] = x[rows, K]·wᵀ.
type Shape struct {
	N, K       int
	DType      string // weight type as in manifests
	Act        int    // ifl_act_kind of the packed activations
	PanelBytes int64  // bytes of 16 rows of packed weights
	Candidates []Candidate
}

// A Candidate is an implementation that supports a shape.
type Candidate struct {
	Impl   string
	Symbol string // name of its C function
	Tile   int    // rows per tile of packed activations
}

// DefaultRows returns the row counts to measure: every one up to 64, where tiles begin
// and end, then the sizes of prefill and large batches.
func DefaultRows() []int {
	var rows []int
	for r := 1; r <= 64; r++ {
		rows = append(rows, r)
	}
	return append(rows, 96, 128, 192, 256, 384, 512)
}

// A Timer times candidates. Driver implements it; tests simulate it.
type Timer interface {
	// Time runs candidates of a shape interleaved. It returns one time per block, in
	// seconds, for each of the shape's candidates, and none for candidates not in
	// which. clean is false if all blocks were disturbed.
	Time(s Shape, rows, blocks int, which []int) (times [][]float64, clean bool, err error)
}

// Options control a measurement.
type Options struct {
	Rows     []int                              // ascending; nil: DefaultRows
	Budget   time.Duration                      // stop after the first round once this much time has passed
	Progress func(done, total int, what string) // may be nil
}

// Limits of a measurement.
const (
	leastBlocks = 5   // minimum before a cell may count as settled
	mostBlocks  = 41  // maximum per cell
	outclassed  = 1.5 // drop an implementation that is this much slower at `losses` consecutive row counts
	losses      = 3
	batchTime   = 3 * time.Millisecond // duration of one call for cheap cells
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

// Measure times every candidate of every shape. The first round visits every cell.
// Further rounds visit the cells without a significant winner until the budget is
// spent. Spreading the samples of a cell over the whole time makes changes of the
// machine's speed affect all cells alike.
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

// first measures the first samples of each cell and drops outclassed candidates: those
// for fewer rows than the fastest one, since they get only worse with more rows.
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

// again measures more samples of cells that are not settled. It returns false if all
// are settled or the budget is spent.
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

// measured returns the candidates that have samples.
func (c *Cell) measured() (which []int) {
	for k, b := range c.Blocks {
		if len(b) > 0 {
			which = append(which, k)
		}
	}
	return which
}

// settled reports whether the fastest candidate is significantly faster than all
// others, or equal to those that might be faster.
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
		times = nil // keep the earlier, undisturbed samples
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

// String returns the shape, such as "[960, 576] q4_b64".
func (s Shape) String() string { return fmt.Sprintf("[%d, %d] %s", s.N, s.K, s.DType) }
