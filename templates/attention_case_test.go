package templates

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/tensor"
)

// address is where a slice's elements are; the caller keeps them alive.
func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// An attentionCase is a layer's state, queries and settings.
type attentionCase struct {
	r                         *rand.Rand
	group, kvHeads, dim, vdim int
	window, global            int
	softcap                   float32
	causal, tree, cross       bool
	alibi, sinks              []float32
	rel                       []float32 // [buckets][ldrel]
	ldrel, relMax             int
	relBucket                 []int16   // of the distances -relMax … relMax
	relKeys, relQueries       []float32 // [heads·dim][ldkeys], [buckets][ldqueries], or none
	ldkeys, ldqueries         int
	selected                  []float32 // [T][top] positions, or none
	top                       int
	pos, seq, slot            []int32 // [T]
	first, past, pageAt, page []int32
	maskWords                 int
	mask                      []uint64
	q                         []float32 // [T][ldq]
	ldq, ldo                  int
	k, v                      [][]float64 // of each sequence, as stored: [rows][kvHeads][dim or vdim]
	state                     []byte
	pageBytes                 int64
}

func (c *attentionCase) heads() int  { return c.group * c.kvHeads }
func (c *attentionCase) tokens() int { return len(c.pos) }

// rows is how many state rows sequence s has, those of its tokens included.
func (c *attentionCase) rows(s int) int {
	if c.cross {
		return int(c.past[s])
	}
	return int(c.past[s] + c.first[s+1] - c.first[s])
}

func (c *attentionCase) String() string {
	return fmt.Sprintf("heads %d on %d, dim %d, vdim %d, window %d, global %d, softcap %g, causal %v, tree %v, cross %v, alibi %v, rel %v, content %v %v, sinks %v, selected %d, first %d, past %d",
		c.heads(), c.kvHeads, c.dim, c.vdim, c.window, c.global, c.softcap, c.causal, c.tree, c.cross, c.alibi != nil, c.rel != nil, c.relKeys != nil, c.relQueries != nil, c.sinks != nil, c.top, c.first, c.past)
}

// normal is n normally distributed numbers times scale.
func normal(r *rand.Rand, n int, scale float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(scale * r.NormFloat64())
	}
	return out
}

func randomAttention(r *rand.Rand, lib *attentionLib, kind int) *attentionCase {
	c := &attentionCase{
		r: r, group: pick(r, 1, 2, 3, 4, 8, 13), kvHeads: 1 + r.IntN(3), dim: pick(r, 16, 20, 64, 80, 128),
		window: pick(r, 0, 0, 1+r.IntN(150), -1-r.IntN(150)), softcap: pick[float32](r, 0, 0, 5), causal: r.IntN(4) > 0, tree: r.IntN(3) == 0,
	}
	c.causal = c.causal || c.tree || c.window < 0
	c.vdim = pick(r, c.dim, c.dim, 16, 20, 64, 80, 128)
	packed := stateTypes[kind] == tensor.Q4B32T2
	if packed { // whole blocks
		c.dim, c.vdim = pick(r, 32, 64, 96, 128, 512), pick(r, 32, 64, 96, 128)
	}
	if r.IntN(3) == 0 {
		c.alibi = normal(r, c.heads(), 0.05)
	}
	if c.cross = r.IntN(5) == 0; c.cross {
		c.causal, c.tree, c.window, c.alibi = false, false, 0, nil
	} else if r.IntN(3) == 0 {
		c.randomBias()
	} else if !c.causal && !packed {
		c.randomContent()
	}
	if !c.causal && c.window > 0 && r.IntN(2) == 0 {
		c.global = 1 + r.IntN(70)
	}
	if r.IntN(3) == 0 {
		c.sinks = normal(r, c.heads(), 1)
	}
	c.randomSteps()
	if c.causal && r.IntN(3) == 0 {
		c.randomSelection()
	}
	c.ldq, c.ldo = c.heads()*c.dim+r.IntN(5), c.heads()*c.vdim+r.IntN(5)
	c.q = normal(r, c.tokens()*c.ldq, 1)
	c.fill(lib, kind)
	return c
}

// randomSteps draws sequences, their earlier rows, tokens and ancestor masks.
func (c *attentionCase) randomSteps() {
	r := c.r
	most := pick(r, 1, 4, 4, 40)
	if c.tree && r.IntN(6) == 0 {
		most = 80
	}
	c.maskWords = 1 + r.IntN(2)
	c.first, c.pageAt = []int32{0}, []int32{0}
	for s := range 1 + r.IntN(3) {
		past, n := pick(r, 0, r.IntN(400), 64*r.IntN(4)+55+r.IntN(9)), 1+r.IntN(most)
		if c.cross {
			past = pick(r, 1, 63, 64, 65, 128, 1+r.IntN(400))
		}
		branches := c.tree && r.IntN(4) > 0 && n <= 64*c.maskWords
		c.past = append(c.past, int32(past))
		c.first = append(c.first, c.first[s]+int32(n))
		c.pageAt = append(c.pageAt, c.pageAt[s]+int32(c.rows(s)+63)/64)
		for i := range n {
			pos, slot := past+i, past+i
			if c.cross {
				pos, slot = r.IntN(500)+i, 0
			}
			c.slot, c.seq = append(c.slot, int32(slot)), append(c.seq, int32(s))
			if !branches {
				c.pos, c.mask = append(c.pos, int32(pos)), append(c.mask, make([]uint64, c.maskWords)...)
			}
		}
		if branches {
			c.randomTree(past, n)
		}
	}
	for _, id := range r.Perm(int(c.pageAt[len(c.past)])) {
		c.page = append(c.page, int32(id))
	}
}

// fill writes every row into the pages. Rows that no sequence owns stay NaN: a
// kernel that lets one in shows it.
func (c *attentionCase) fill(lib *attentionLib, kind int) {
	elem := 0
	switch {
	case stateTypes[kind] == tensor.Q4B32T2:
		elem = -1
	case !stateTypes[kind].IsBlock():
		elem = stateTypes[kind].RowBytes(1)
	}
	bytes, _, _ := purego.SyscallN(lib.pageBytes, uintptr(c.kvHeads), uintptr(c.dim), uintptr(c.vdim), uintptr(elem))
	c.pageBytes = int64(bytes)
	c.state = aligned(int(c.pageBytes) * len(c.page))
	for i := range c.state {
		c.state[i] = 0xff
	}
	step := c.whole().cStep()
	for s := range c.past {
		rows := c.rows(s)
		k, v := normal(c.r, rows*c.kvHeads*c.dim, 1), normal(c.r, rows*c.kvHeads*c.vdim, 1)
		for i := range rows * c.kvHeads {
			p := &cPut{
				kind: int32(kind), slot: int32(i / c.kvHeads), seq: int32(s), head: int32(i % c.kvHeads), kvHeads: int32(c.kvHeads),
				dim: int32(c.dim), vdim: int32(c.vdim), k: &k[i*c.dim], v: &v[i*c.vdim],
			}
			if i%2 == 1 { // the two parts one after the other
				only := *p
				only.v, p.k = nil, nil
				purego.SyscallN(lib.putRow, uintptr(unsafe.Pointer(step)), address(c.state), uintptr(unsafe.Pointer(&only)))
			}
			purego.SyscallN(lib.putRow, uintptr(unsafe.Pointer(step)), address(c.state), uintptr(unsafe.Pointer(p)))
		}
		c.k, c.v = append(c.k, stored(k, c.dim, stateTypes[kind].OfKeys())), append(c.v, stored(v, c.vdim, stateTypes[kind]))
	}
	runtime.KeepAlive(c)
}

// An attentionStep is a run of tokens of the case: all of them, or some of one
// sequence with everything before them already written.
type attentionStep struct {
	c                        *attentionCase
	from, to                 int
	first, past, pageAt, ids []int32
}

func (c *attentionCase) whole() *attentionStep {
	return &attentionStep{c: c, to: c.tokens(), first: c.first, past: c.past, pageAt: c.pageAt, ids: c.page}
}

// inParts runs each sequence alone, in steps of at most `most` tokens, each
// with some number of threads.
func (c *attentionCase) inParts(r *rand.Rand, lib *attentionLib, dt tensor.DType, most, threads int) []float32 {
	var out []float32
	for s := range c.past {
		for from, end := int(c.first[s]), int(c.first[s+1]); from < end; {
			to := min(end, from+1+r.IntN(most))
			past := c.slot[from]
			if c.cross {
				past = c.past[s]
			}
			step := &attentionStep{
				c: c, from: from, to: to, first: []int32{0, int32(to - from)}, past: []int32{past},
				pageAt: []int32{0, c.pageAt[s+1] - c.pageAt[s]}, ids: c.page[c.pageAt[s]:c.pageAt[s+1]],
			}
			out = append(out, c.call(lib, dt, step, 1+r.IntN(threads))...)
			from = to
		}
	}
	return out
}

// cStep is the step as the kernel gets it.
func (s *attentionStep) cStep() *cStep {
	c := s.c
	step := &cStep{
		abi: 4, tokens: int32(s.to - s.from), seqs: int32(len(s.past)), pos: &c.pos[s.from], slot: &c.slot[s.from], seq: &c.seq[s.from],
		first: &s.first[0], past: &s.past[0], pageAt: &s.pageAt[0], page: &s.ids[0],
	}
	if c.tree {
		step.mask, step.maskWords = &c.mask[s.from*c.maskWords], int32(c.maskWords)
	}
	return step
}

// call runs the kernel and returns the outputs of the step's tokens, with what
// lies between the rows.
func (c *attentionCase) call(lib *attentionLib, dt tensor.DType, s *attentionStep, threads int) []float32 {
	heads, rows := c.heads(), s.to-s.from
	pages := pick(c.r, 1, 4, 20)
	need, _, _ := purego.SyscallN(lib.scratch, uintptr(threads), uintptr(rows), uintptr(heads), uintptr(c.dim), uintptr(c.vdim), uintptr(pages))
	scratch := aligned(int(need))
	for i := range scratch {
		scratch[i] = 0xff
	}
	out := make([]float32, rows*c.ldo)
	a := &cAttention{
		step: s.cStep(), pool: lib.pools[threads], q: &c.q[s.from*c.ldq], ldq: int64(c.ldq), out: &out[0], ldo: int64(c.ldo),
		state: &c.state[0], pageBytes: c.pageBytes, heads: int32(heads), kvHeads: int32(c.kvHeads), dim: int32(c.dim), vdim: int32(c.vdim),
		scale: c.scale(), softcap: c.softcap, window: int32(c.window), scratch: &scratch[0], scratchBytes: int64(need),
	}
	if c.causal {
		a.causal = 1
	}
	if c.alibi != nil {
		a.alibi = &c.alibi[0]
	}
	if c.sinks != nil {
		a.sinks = &c.sinks[0]
	}
	if c.rel != nil {
		a.rel, a.ldrel, a.relBucket, a.relMax = &c.rel[0], int64(c.ldrel), &c.relBucket[0], int32(c.relMax)
	}
	if c.relKeys != nil {
		a.relKeys, a.ldkeys, a.relBucket, a.relMax = &c.relKeys[0], int64(c.ldkeys), &c.relBucket[0], int32(c.relMax)
	}
	if c.relQueries != nil {
		a.relQueries, a.ldqueries, a.relBucket, a.relMax = &c.relQueries[0], int64(c.ldqueries), &c.relBucket[0], int32(c.relMax)
	}
	a.global = int32(c.global)
	if c.selected != nil {
		a.selected, a.lds, a.top = &c.selected[s.from*c.top], int64(c.top), int32(c.top)
	}
	purego.SyscallN(lib.run, lib.pools[threads], lib.kernels[dt], uintptr(unsafe.Pointer(a)))
	runtime.KeepAlive(a)
	return out
}

func (c *attentionCase) scale() float32 { return float32(1 / math.Sqrt(float64(c.dim))) }

// sees says whether token t sees a state row of its sequence, and the row's
// position.
func (c *attentionCase) sees(t, row int) (pos int, ok bool) {
	if c.cross {
		return 0, true
	}
	s, own := c.seq[t], int(c.pos[t])
	pos, ok = row, true
	if i := row - int(c.past[s]); i >= 0 {
		pos = int(c.pos[int(c.first[s])+i])
		if sees, tree := c.masked(t, i); tree {
			ok = sees
		}
	}
	ok = ok && (c.selected == nil || slices.Contains(c.selected[t*c.top:(t+1)*c.top], float32(pos)))
	if c.causal {
		if c.window < 0 {
			return pos, ok && pos <= own && pos/-c.window == own/-c.window
		}
		return pos, ok && pos <= own && (c.window == 0 || pos > own-c.window)
	}
	return pos, ok && (c.window == 0 || pos < c.global || max(pos-own, own-pos) <= c.window)
}

// compare checks outputs of all tokens against float64.
func (c *attentionCase) compare(got []float32) error {
	for t := range c.tokens() {
		for h := range c.heads() {
			want := c.reference(t, h)
			for d, w := range want {
				if g := float64(got[t*c.ldo+h*c.vdim+d]); !(math.Abs(g-w) <= 2e-5) {
					return fmt.Errorf("token %d head %d value %d is %g, want %g", t, h, d, g, w)
				}
			}
		}
		for i := c.heads() * c.vdim; i < c.ldo; i++ {
			if got[t*c.ldo+i] != 0 {
				return fmt.Errorf("token %d: something is written behind its row", t)
			}
		}
	}
	return nil
}

// reference is softmax(scale·q·kᵀ …)·v of one token and head.
func (c *attentionCase) reference(t, h int) []float64 {
	s, kv := c.seq[t], h/c.group
	q := c.q[t*c.ldq+h*c.dim:][:c.dim]
	out := make([]float64, c.vdim)
	var scores []float64
	var rows []int
	most := math.Inf(-1)
	for row := range c.rows(int(s)) {
		pos, ok := c.sees(t, row)
		if !ok {
			continue
		}
		k, x := c.k[s][(row*c.kvHeads+kv)*c.dim:], 0.0
		far := min(max(pos-int(c.pos[t]), -c.relMax), c.relMax)
		for d, f := range q {
			x += float64(f) * k[d]
			if c.relKeys != nil {
				x += float64(f) * float64(c.relKeys[(h*c.dim+d)*c.ldkeys+int(c.relBucket[far+c.relMax])])
			}
			if c.relQueries != nil {
				x += k[d] * float64(c.relQueries[int(c.relBucket[far+c.relMax])*c.ldqueries+h*c.dim+d])
			}
		}
		x *= float64(c.scale())
		if cp := float64(c.softcap); cp > 0 {
			x = cp * math.Tanh(x/cp)
		}
		if c.alibi != nil {
			x -= float64(c.alibi[h]) * math.Abs(float64(pos-int(c.pos[t])))
		}
		if c.rel != nil {
			x += float64(c.rel[int(c.relBucket[far+c.relMax])*c.ldrel+h])
		}
		most = max(most, x)
		scores, rows = append(scores, x), append(rows, row)
	}
	var sum float64
	for i, row := range rows {
		p := math.Exp(scores[i] - most)
		sum += p
		for d := range out {
			out[d] += p * c.v[s][(row*c.kvHeads+kv)*c.vdim+d]
		}
	}
	if c.sinks != nil && len(rows) > 0 {
		sum += math.Exp(float64(c.sinks[h]) - most)
	}
	for d := range out {
		if len(rows) > 0 {
			out[d] /= sum
		}
	}
	return out
}
