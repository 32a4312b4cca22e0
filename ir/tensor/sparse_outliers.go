package tensor

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// A SparseOutlier is a correction that is added to an entry of a block-quantized matrix.
type SparseOutlier struct {
	Row, Col int
	Value    float32
}

// Limits of sparse outliers; see package dtype.
const (
	MaxSparseCols  = dtype.MaxSparseCols
	MaxSparseRatio = dtype.MaxSparseRatio
)

// SparseCount returns the number of sparse outliers of a matrix for a fraction of its
// entries.
func SparseCount(rows, cols int, ratio float64) int {
	return int(float64(rows) * float64(cols) * ratio)
}

// A Matrix provides the rows of a matrix: Row fills x with row r. It may be called by
// several goroutines concurrently.
type Matrix struct {
	Rows, Cols int
	Row        func(r int, x []float32)
}

// EncodeSparse encodes a matrix row by row with at most n sparse outliers. Columns must be
// whole blocks of dt. Outliers are entries kept in float32, as differences to the decoded
// blocks (dense-and-sparse decomposition; Kim et al. 2023, SqueezeLLM, §4.2).
//
// The entries are chosen one by one to reduce the squared error the most, weighted by
// importance (one per column, or nil). Each time, the entry farthest from the mean of its
// block is removed from the block with the largest gain, and that block is encoded again
// without it. The error therefore never increases with n, in any block or in total. The
// outliers are returned in row-major order. There are fewer than n if no block gains from
// more.
func EncodeSparse(dt DType, m Matrix, n int, importance []float32) ([]byte, []SparseOutlier, error) {
	if !dt.IsBlock() || blockEncoders[dt] == nil || dt.IsActivation() || m.Rows < 1 || m.Cols < 1 || m.Cols%dt.Block() != 0 {
		return nil, nil, fmt.Errorf("encode %s with sparse outliers: [%d, %d] is not a matrix of whole blocks of a weight type", dt, m.Rows, m.Cols)
	}
	if m.Cols > MaxSparseCols {
		return nil, nil, fmt.Errorf("encode %s with sparse outliers: %d columns, want at most %d", dt, m.Cols, MaxSparseCols)
	}
	if importance != nil && len(importance) != m.Cols {
		return nil, nil, fmt.Errorf("encode %s with sparse outliers: importance of %d columns for %d", dt, len(importance), m.Cols)
	}
	e := &sparseEncoder{dt: dt, m: m, importance: importance, out: make([]byte, m.Rows*dt.RowBytes(m.Cols))}
	e.blocks = make([]sparseBlock, m.Rows*(m.Cols/dt.Block()))
	if n > 0 {
		e.ahead = make([]byte, len(e.out))
	}
	e.encodeAll()
	if n <= 0 {
		return e.out, nil, nil
	}
	return e.out, e.keep(n), nil
}

// A sparseBlock is a block with the gain of keeping one more of its entries.
type sparseBlock struct {
	kept []uint8 // outliers, in order of removal
	err  float64 // squared error of the remaining entries
	left float64 // squared error after removing next; err if it does not decrease
	next uint8
}

type sparseEncoder struct {
	dt         DType
	m          Matrix
	importance []float32
	out        []byte
	ahead      []byte // each block encoded without its next entry; nil if there is no gain
	blocks     []sparseBlock
	queue      []int // heap of blocks with a gain, the largest gain first
	row        []float32
	at         int // number of that row
}

// encodeAll encodes every block without outliers, and computes the gain of the first
// entry to keep.
func (e *sparseEncoder) encodeAll() {
	var next atomic.Int64
	var wg sync.WaitGroup
	per := e.m.Cols / e.dt.Block()
	for range max(1, min(runtime.GOMAXPROCS(0), e.m.Rows)) {
		wg.Go(func() {
			x := make([]float32, e.m.Cols)
			for {
				r := int(next.Add(1)) - 1
				if r >= e.m.Rows {
					return
				}
				e.m.Row(r, x)
				for b := range per {
					i := r*per + b
					e.blocks[i].err = e.encode(i, x, e.block(e.out, i))
					if e.ahead != nil {
						e.look(i, x)
					}
				}
			}
		})
	}
	wg.Wait()
}

// block returns the bytes of block i in out or ahead.
func (e *sparseEncoder) block(of []byte, i int) []byte {
	size := e.dt.BlockBytes()
	return of[i*size : (i+1)*size]
}

// values returns block i of its row x.
func (e *sparseEncoder) values(i int, x []float32) (src, importance []float32) {
	b := e.dt.Block()
	at := i % (e.m.Cols / b) * b
	if e.importance != nil {
		importance = e.importance[at : at+b]
	}
	return x[at : at+b], importance
}

// encode encodes block i without its outliers to dst and returns the squared error of the
// remaining entries.
func (e *sparseEncoder) encode(i int, x []float32, dst []byte) float64 {
	src, importance := e.values(i, x)
	kept := e.blocks[i].kept
	var rest, back [64]float32
	copy(rest[:], src)
	if len(kept) > 0 {
		mean := float32(restMean(src, kept))
		for _, c := range kept {
			rest[c] = mean
		}
	}
	n := len(src)
	blockEncoders[e.dt](dst, e.dt, rest[:n], rounding{importance: importance})
	if err := Decode(back[:n], e.dt, dst); err != nil {
		panic("bug: " + err.Error())
	}
	sum := 0.0
	for c := range n {
		if slices.Contains(kept, uint8(c)) {
			continue
		}
		d := float64(src[c]) - float64(back[c])
		if importance != nil {
			d *= d * float64(importance[c])
			sum += d
			continue
		}
		sum += d * d
	}
	return sum
}

// restMean returns the mean of a block without the kept entries.
func restMean(src []float32, kept []uint8) float64 {
	sum := 0.0
	for c, x := range src {
		if !slices.Contains(kept, uint8(c)) {
			sum += float64(x)
		}
	}
	return sum / float64(max(1, len(src)-len(kept)))
}

// look computes the next entry that block i would keep, and the error without it.
func (e *sparseEncoder) look(i int, x []float32) {
	b := &e.blocks[i]
	src, _ := e.values(i, x)
	b.left = b.err
	if len(b.kept)+2 > len(src) {
		return
	}
	mean, far := restMean(src, b.kept), -1.0
	for c, v := range src {
		if d := math.Abs(float64(v) - mean); d > far && !slices.Contains(b.kept, uint8(c)) {
			far, b.next = d, uint8(c)
		}
	}
	was := b.kept
	b.kept = append(slices.Clone(was), b.next)
	if left := e.encode(i, x, e.block(e.ahead, i)); left < b.err {
		b.left = left
	}
	b.kept = was
}

// gain returns the decrease of the squared error if the next entry is kept.
func (b *sparseBlock) gain() float64 { return b.err - b.left }

// keep removes n entries, always the one with the largest gain.
func (e *sparseEncoder) keep(n int) []SparseOutlier {
	for i := range e.blocks {
		if e.blocks[i].gain() > 0 {
			e.queue = append(e.queue, i)
		}
	}
	heap.Init(e)
	e.row, e.at = make([]float32, e.m.Cols), -1
	per := e.m.Cols / e.dt.Block()
	touched := map[int]bool{}
	for ; n > 0 && len(e.queue) > 0; n-- {
		i := e.queue[0]
		b := &e.blocks[i]
		e.load(i / per)
		b.kept = append(b.kept, b.next)
		b.err = b.left
		copy(e.block(e.out, i), e.block(e.ahead, i))
		touched[i] = true
		if e.look(i, e.row); b.gain() > 0 {
			heap.Fix(e, 0)
		} else {
			heap.Pop(e)
		}
	}
	return e.outliers(touched)
}

func (e *sparseEncoder) load(r int) {
	if e.at != r {
		e.m.Row(r, e.row)
		e.at = r
	}
}

// outliers returns the differences of the kept entries to the decoded blocks.
func (e *sparseEncoder) outliers(touched map[int]bool) []SparseOutlier {
	var out []SparseOutlier
	var back [64]float32
	block := e.dt.Block()
	per := e.m.Cols / block
	for i := range touched {
		if err := Decode(back[:block], e.dt, e.block(e.out, i)); err != nil {
			panic("bug: " + err.Error())
		}
		for _, c := range e.blocks[i].kept {
			out = append(out, SparseOutlier{Row: i / per, Col: i%per*block + int(c), Value: back[c]})
		}
	}
	slices.SortFunc(out, func(a, b SparseOutlier) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Col, b.Col))
	})
	for i := range out {
		d := &out[i]
		e.load(d.Row)
		d.Value = finite32(e.row[d.Col]) - d.Value
	}
	return out
}

// finite32 returns x, with 0 for NaN and the largest float32 for infinities.
func finite32(x float32) float32 {
	if x != x {
		return 0
	}
	return max(-math.MaxFloat32, min(math.MaxFloat32, x))
}

// The queue is a heap of blocks by gain. Ties are in matrix order, so that the result is
// deterministic.

func (e *sparseEncoder) Len() int      { return len(e.queue) }
func (e *sparseEncoder) Swap(i, j int) { e.queue[i], e.queue[j] = e.queue[j], e.queue[i] }
func (e *sparseEncoder) Less(i, j int) bool {
	a, b := e.queue[i], e.queue[j]
	return cmp.Or(cmp.Compare(e.blocks[b].gain(), e.blocks[a].gain()), cmp.Compare(a, b)) < 0
}

// Push panics: blocks are only removed.
func (e *sparseEncoder) Push(any) { panic("bug: push to the queue of blocks") }

// Pop removes the last block.
func (e *sparseEncoder) Pop() any {
	e.queue = e.queue[:len(e.queue)-1]
	return nil
}
