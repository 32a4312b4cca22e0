package pack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"golang.org/x/sys/unix"
)

// An Item is a weight to pack: its transform, the values of {i} and {j} in it, and the
// expected result. A vector has Rows 1. If the transform yields another type than
// DType, the result is quantized to DType.
type Item struct {
	Name           string
	Index          []int
	Transform      *tensor.Transform
	DType          tensor.DType
	Rows, Cols     int
	Layout         string // LayoutPanel16 or LayoutRow
	SparseOutliers int    // maximum sparse outliers of a matrix in panels
}

// Sources returns the names of the stored tensors that the item reads.
func (it *Item) Sources() []string {
	var out []string
	for _, name := range it.Transform.Sources() {
		if source, err := tensor.SourceName(name, it.Index); err == nil { // else evaluating it fails
			out = append(out, source)
		}
	}
	return out
}

// Options are the optional parts of Pack; the zero value is usable.
type Options struct {
	// Source is stored in the file: packed.Source of what was packed.
	Source string
	// Workers is the number of goroutines; 0 means one per CPU, two at least.
	Workers int
	// Progress is called with the packed and the total bytes; calls do not overlap.
	Progress func(done, total int64)
}

// Pack evaluates the items' transforms and writes them, in the order given, to a
// packed file at path. The file appears complete or not at all: it is written
// beside path under another name, synced and renamed; after an error or a
// canceled context nothing is left. Memory use is a few rows per worker,
// except for transforms with transpose or reshape, which hold a whole weight.
func Pack(ctx context.Context, src Source, plan []Item, path string, opt Options) error {
	items, size, err := place(plan)
	if err != nil {
		return err
	}
	head, err := packed.Header(opt.Source, noHash, size, items)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return fmt.Errorf("packed weights: %w", err)
	}
	defer os.Remove(f.Name()) // fails harmlessly after the rename
	defer f.Close()
	p := &packer{ctx: ctx, src: src, plan: plan, items: items, bytes: size, file: f, start: int64(len(head)), opt: opt}
	if err := p.run(); err != nil {
		if errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("%s: packing needs %d MB: %w; free space or choose another cache folder", path, (p.start+size)>>20+1, unix.ENOSPC)
		}
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// noHash is a placeholder for the hash of the data, of the same length.
var noHash = strings.Repeat("0", 2*sha256.Size)

// place assigns offsets to the items.
func place(plan []Item) (items []packed.Item, size int64, err error) {
	if len(plan) == 0 {
		return nil, 0, errors.New("packing: no weights in the plan")
	}
	seen := map[string]bool{}
	for _, it := range plan {
		key := fmt.Sprint(it.Name, it.Index)
		if seen[key] {
			return nil, 0, fmt.Errorf("packing: weight %s is in the plan twice", key)
		}
		seen[key] = true
		items = append(items, packed.Item{Name: it.Name, Index: it.Index, DType: it.DType, Rows: it.Rows, Cols: it.Cols, Layout: it.Layout, SparseOutliers: it.SparseOutliers})
	}
	if size, err = packed.Place(items); err != nil {
		return nil, 0, fmt.Errorf("packing %w", err)
	}
	return items, size, nil
}

// A packer writes one file.
type packer struct {
	ctx   context.Context
	src   Source
	plan  []Item
	items []packed.Item // of plan, placed
	bytes int64         // of the data
	file  *os.File
	start int64 // offset of the data
	opt   Options

	mu   sync.Mutex
	done int64
	err  error
}

func (p *packer) run() error {
	total := p.start + p.bytes
	// Reserving the space detects a full disk before the work. If the file system
	// does not support it, the writes fail.
	if err := allocate(p.file, total); errors.Is(err, unix.ENOSPC) {
		return err
	}
	if err := p.file.Truncate(total); err != nil {
		return err
	}
	if err := p.writeItems(); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(onlyWriter{h}, contextReader{p.ctx, io.NewSectionReader(p.file, p.start, p.bytes)}, make([]byte, 1<<20)); err != nil {
		return err
	}
	head, err := packed.Header(p.opt.Source, hex.EncodeToString(h.Sum(nil)), p.bytes, p.items)
	if err != nil {
		return err
	}
	if _, err := p.file.WriteAt(head, 0); err != nil {
		return err
	}
	if err := p.file.Chmod(0o644); err != nil {
		return err
	}
	return p.file.Sync()
}

type onlyWriter struct{ io.Writer }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// A chunk is a run of panels or rows of one item.
type chunk struct {
	dense    *Dense
	item     int
	from, to int // rows; from is a multiple of 16 for panels; none: the item's outliers
}

// chunkBytes is the approximate size of a worker's writes.
const chunkBytes = 1 << 20

func (p *packer) writeItems() error {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	fail := func(err error) {
		p.mu.Lock()
		if p.err == nil {
			p.err = err
		}
		p.mu.Unlock()
		cancel()
	}
	chunks := make(chan chunk)
	var wg sync.WaitGroup
	workers := p.opt.Workers
	if workers <= 0 {
		workers = max(2, runtime.NumCPU())
	}
	for range workers {
		wg.Go(func() {
			w := packWorker{packer: p}
			for c := range chunks {
				if err := guardFaults(p.src.Set, func() error { return w.pack(c) }); err != nil {
					fail(err)
				}
			}
		})
	}
	err := guardFaults(p.src.Set, func() error { return p.split(ctx, chunks) })
	close(chunks)
	wg.Wait()
	if p.err != nil {
		return p.err
	}
	return err
}

// split evaluates the transforms and hands out chunks of rows.
func (p *packer) split(ctx context.Context, chunks chan<- chunk) error {
	for i, it := range p.plan {
		d, err := evalItem(p.src, it)
		if err != nil {
			return err
		}
		perRow := p.items[i].Bytes / int64(it.Rows)
		step := int(max(1, chunkBytes/max(1, perRow)/packed.PanelRows)) * packed.PanelRows
		var parts []chunk
		for from := 0; from < it.Rows; from += step {
			parts = append(parts, chunk{d, i, from, min(it.Rows, from+step)})
		}
		if it.SparseOutliers > 0 {
			parts = append(parts, chunk{d, i, it.Rows, it.Rows})
		}
		for _, c := range parts {
			select {
			case chunks <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return ctx.Err()
}

func evalItem(src Source, it Item) (*Dense, error) {
	d, err := evalTo(src, it.Transform, it.Index, it.DType)
	if err != nil {
		return nil, fmt.Errorf("weight %s%v: %w", it.Name, it.Index, err)
	}
	if d.Rows != it.Rows || d.Cols != it.Cols {
		return nil, fmt.Errorf("weight %s%v: the files give [%d, %d], the model needs [%d, %d]; check the configuration", it.Name, it.Index, d.Rows, d.Cols, it.Rows, it.Cols)
	}
	if d.outliers != nil && it.SparseOutliers == 0 {
		return nil, fmt.Errorf("weight %s%v: no space is reserved for its sparse outliers", it.Name, it.Index)
	}
	if d.DType == it.DType {
		return d, nil
	}
	if !tensor.CanEncode(it.DType) {
		return nil, fmt.Errorf("weight %s%v: cannot convert %s to %s", it.Name, it.Index, d.DType, it.DType)
	}
	e := &evaluator{src: src, index: it.Index}
	v, err := e.quantizeBy(value{dt: d.DType, rows: d.Rows, cols: d.Cols, inner: 1, rank: 2, row: d.row}, it.DType, it.Transform)
	if err != nil {
		return nil, fmt.Errorf("weight %s%v: %w", it.Name, it.Index, err)
	}
	return &Dense{DType: v.dt, Rows: v.rows, Cols: v.cols, row: v.row}, nil
}

// A packWorker holds the memory of a goroutine.
type packWorker struct {
	*packer
	scratch scratch
	out     []byte
}

func (w *packWorker) pack(c chunk) error {
	it, e := &w.plan[c.item], &w.items[c.item]
	var size, at int64
	switch {
	case c.from == c.to:
		size, at = packed.SparseBytes(it.Rows, it.SparseOutliers), e.Bytes-packed.SparseBytes(it.Rows, it.SparseOutliers)
	case it.Layout == packed.LayoutPanel16:
		size = packed.PanelBytes(it.DType, c.to-c.from, it.Cols)
		at = packed.PanelBytes(it.DType, c.from, it.Cols)
	default:
		stride := int64(packed.RowStride(it.DType, it.Cols))
		size, at = stride*int64(c.to-c.from), stride*int64(c.from)
	}
	if int64(cap(w.out)) < size {
		w.out = make([]byte, size)
	}
	out := w.out[:size]
	row := func(r int) []byte {
		if r%packed.PanelRows == 0 {
			w.scratch.reset()
		}
		return c.dense.row(c.from+r, &w.scratch)
	}
	switch {
	case c.from == c.to:
		if err := packSparse(out, it.Rows, it.SparseOutliers, c.dense.SparseOutliers); err != nil {
			return fmt.Errorf("weight %s%v: %w", it.Name, it.Index, err)
		}
	case it.Layout == packed.LayoutPanel16:
		PackPanels(out, it.DType, c.to-c.from, it.Cols, row)
	default:
		clear(out)
		stride := packed.RowStride(it.DType, it.Cols)
		for r := range c.to - c.from {
			copy(out[r*stride:(r+1)*stride], row(r))
		}
	}
	if _, err := w.file.WriteAt(out, w.start+e.Offset+at); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done += size
	if w.opt.Progress != nil {
		w.opt.Progress(w.done, w.bytes)
	}
	return nil
}

// guardFaults turns the fault of reading past the end of a file that shrank
// while mapped into an error.
func guardFaults(set *checkpoint.Set, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("%s: a weight file changed or vanished while it was read; try again", strings.Join(set.Files(), ", "))
		default:
			panic(p)
		}
	}()
	return f()
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
