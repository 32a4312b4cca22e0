package cuda

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

const (
	// loraRows is the maximum number of rows for which each has thread blocks of its own to
	// compute A·x. With more, a block computes several, which share what it reads of A.
	loraRows = 32
	// loraTile is the number of rows of a block if there are more.
	loraTile = 8
	// loraBlocks is the number of blocks that share the ranks of a site: a warp for each of
	// the first 128.
	loraBlocks = 16
)

// findSites finds the sites of the matmul's adapters.
func (m *matmul) findSites() error {
	if m.Adapters == nil {
		return nil
	}
	layer, err := m.u.names.Layer(m.Adapters.Arg, m.region.Loop)
	if err != nil {
		return err
	}
	var sites []manifest.CUDASites
	for _, p := range m.Adapters.Parts {
		sites = append(sites, manifest.CUDASites{First: p.Site, Count: m.u.e.layers(p.Site)})
		site := ctext.Plus(layer, strconv.Itoa(p.Site))
		m.adapters = append(m.adapters, fmt.Sprintf("ifl_lora_part{%s, %d, %d, %d}", site, p.First, p.Step, p.Panels))
	}
	m.u.include("ifl_lora.cuh")
	p := &m.u.e.out.Plan
	m.adapted = len(p.Adapted)
	p.Adapted = append(p.Adapted, sites)
	return nil
}

// layers returns the number of layers of the weight whose first layer is a site.
func (e *emitter) layers(site int) int {
	n := 1
	for _, s := range e.layout.Sites[site+1:] {
		if s.Weight != e.layout.Sites[site].Weight {
			break
		}
		n++
	}
	return n
}

// role returns the enumerator of the role of the matmul's rows in ifl_lora.cuh.
func (m *matmul) role() string { return "IFL_" + strings.ToUpper(m.region.Role) }

// storedRows returns where the packing kernel stores a copy of row t for adapters, ""
// for nowhere, and the minimum number of rows for which it does, 0 for any. A block with
// one row computes it again, unless that has effects.
func (m *matmul) storedRows() (address string, from int) {
	if m.adapters == nil || !m.computed {
		return "", 0
	}
	if !m.kept {
		from = loraRows + 1
	}
	return fmt.Sprintf("(c->rows + (int64_t)t * %d)", layout.Round16(m.Weight.K)), from
}

// adapt emits the kernels that compute A·x in front of the matmul, for few and for many
// rows, and their launches in steps with adapters.
func (m *matmul) adapt() error {
	if m.adapters == nil {
		return nil
	}
	source := m.source
	if stored, _ := m.storedRows(); stored != "" {
		source = stored
		p := &m.u.e.out.Plan
		p.RowFloats = max(p.RowFloats, layout.Round16(m.Weight.K))
	}
	front := m.computed && !m.kept
	first := source
	if front {
		first = m.source
	}
	few, err := m.loraKernel(1, first, front)
	if err != nil {
		return err
	}
	many, err := m.loraKernel(loraTile, source, false)
	if err != nil {
		return err
	}
	m.launchLora(few, 1).To = loraRows
	l := m.launchLora(many, loraTile)
	if front && m.packPrivate { // an implementation without the packing kernel stores no rows
		m.when(l, func(c impl) bool { return !c.packPrivate })
		l.From = loraRows + 1
		l = m.launchLora(few, 1)
		m.when(l, func(c impl) bool { return c.packPrivate })
	}
	l.From = loraRows + 1
	return nil
}

// loraKernel writes the kernel for blocks of nt rows. source is the address of row t,
// which the prologue computes if front is set.
func (m *matmul) loraKernel(nt int, source string, front bool) (int, error) {
	site := "0"
	for i, p := range m.adapters {
		of := p + ".site"
		if i == 0 {
			site = of
		} else {
			site = fmt.Sprintf("part == %d ? %s : %s", i, of, site)
		}
	}
	shared := 0
	if front {
		shared = 4 * m.front.floats()
	}
	return m.u.kernel("lora", fmt.Sprintf("%s_lora%d", m.u.name, nt), rowThreads, shared, map[string]any{
		"Doc": fmt.Sprintf("adapters of %s for %d rows a block", m.u.name, nt), "K": m.Weight.K, "NT": nt, "Parts": len(m.adapters), "Count": m.count,
		"Site": site, "Role": m.role(), "Front": front, "Source": source})
}

// launchLora launches a kernel that computes A·x for blocks of nt rows.
func (m *matmul) launchLora(kernel, nt int) *manifest.CUDALaunch {
	l := m.s.launch(kernel, m.blocks(nt), blocksOf(loraBlocks), blocksOf(len(m.adapters)))
	l.Rows, l.Adapted = m.region.Role, &m.adapted
	return l
}
