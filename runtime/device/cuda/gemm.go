//go:build unix

package cuda

import (
	"slices"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// gemmSizes are the buffer sizes in bytes for matmuls of many rows.
type gemmSizes struct{ wide, panels, product, factor, blas int64 }

func (s *gemmSizes) bytes() int64 { return s.wide + s.panels + s.product + s.factor + s.blas }

// need enlarges the buffers for the matmuls in list with up to rowsOf rows.
func (s *gemmSizes) need(d *Device, list []manifest.CUDALaunch, rowsOf func(*manifest.CUDALaunch) int) {
	c, err := d.chosen()
	for i := range list {
		l := &list[i]
		s.need(d, l.Body, rowsOf)
		if l.Choice == nil || err != nil {
			continue
		}
		m := &d.Plan.Matmuls[l.Choice.Matmul]
		wide := slices.ContainsFunc(l.Choice.Impls, func(i int) bool {
			return m.Impls[i] == implGemm || m.Impls[i] == implCublas || d.Plan.Needs[m.Impls[i]] != 0
		})
		if !wide || !d.measuring && !c.ever(l, rowsOf(l)) {
			continue
		}
		rows, n := int64(rowsOf(l)), int64(m.N+15)&^15
		s.wide = max(s.wide, int64(manifest.WideRows(int(rows)))*int64(manifest.WideCols(m.K))*2)
		s.product = max(s.product, rows*n*4)
		s.factor = max(s.factor, rows*4)
		if l.Gemm != nil && c.blas != nil {
			s.panels = max(s.panels, int64(min(d.GPU.piece(l.Gemm.Ld), l.Gemm.N))*int64(l.Gemm.Ld)*2)
			s.blas = d.GPU.blasBytes()
		}
	}
}

// piece returns how many rows of a matrix to unpack at once: a whole number of tiles
// that stays in L2 until the matmul reads it.
func (g *GPU) piece(ld int) int {
	bytes := min(max(g.L2Bytes/2, 8<<20), 32<<20)
	return max(bytes/(2*ld)/manifest.GemmTile, 1) * manifest.GemmTile
}

// rows returns the number of rows of a launch in a step. Shapes of graphs are rounded
// up, but the buffers hold no more than the configured maximum.
func (m *model) rows(l *manifest.CUDALaunch, s shape) int {
	return min(s.rowsOf(l.Rows), m.most().rowsOf(l.Rows)) * max(l.Times, 1)
}

// most returns the shape of the largest step.
func (m *model) most() shape {
	return shape{tokens: m.cfg.MaxTokens, outRows: m.cfg.MaxOutRows, seqs: m.cfg.MaxSeqs}
}

// gemm enqueues a matmul by cuBLASLt. Its input rows are already in the wide buffer.
func (m *model) gemm(l *manifest.CUDALaunch, s shape, layer int) error {
	g, h := l.Gemm, &m.memory.header
	rows := m.rows(l, s)
	piece := m.GPU.piece(g.Ld)
	for at := 0; at < g.N; at += piece {
		n := min(piece, g.N-at)
		lay, first, product := int32(layer), int32(at/16), h.product+pointer(4*at)
		err := m.GPU.launch(m.kernels[g.Unpack], [3]int{n / 16, 4, 1}, m.stream,
			unsafe.Pointer(&m.memory.ctx), unsafe.Pointer(&m.memory.step), unsafe.Pointer(&lay), unsafe.Pointer(&first))
		if err == nil {
			err = m.blas.multiply(gemmShape{n, rows, g.Ld, g.N}, h.panels, h.wide, product, m.stream)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
