package speculate

import (
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// Constants of Medusa drafts.
const (
	medusaRanks  = 10  // ranked candidates per head, as in the reference implementation
	medusaNodes  = 63  // maximum nodes of an automatically chosen tree
	medusaPrior  = 32  // weight of the initial accuracies, in observations
	medusaMemory = 256 // maximum weight of the past
	medusaRetree = 8   // a tree is chosen every medusaRetree drafts
)

// Assumed accuracies of heads without measured ones: that of head 0's best candidate,
// and the factor from each head to the next.
const (
	medusaFirst = 0.5
	medusaFall  = 0.7
)

// A Medusa drafts trees of the candidates of a model's Medusa heads. If the model spec
// has no tree, it chooses the tree with the most expected tokens per unit of time, from
// measured accuracies and step times. If no tree pays, it drafts nothing and, after a
// few such steps, skips the heads with exponential back-off.
type Medusa struct {
	heads, columns int
	output         int
	fixed          *medusa.Plan // the model spec's tree, or nil
	plan           *medusa.Plan // current tree; nil: none pays
	age            int          // drafts since plan was chosen
	accuracy       medusa.Accuracy
	weight         []float64 // of each head's accuracies

	row   []float32 // output of the heads; nil: not computed
	tops  [][]int32 // candidates of each head, best first
	known bool      // tops belong to the last Propose
	rows  []float32 // scratch: logits of tops

	backoff Backoff
	tree    Tree
}

// NewHeads returns the drafter of one sequence for the model's draft heads; output is
// the index of the heads' output in the engine's graph.
func NewHeads(m *manifest.Medusa, output int) Drafter {
	if m.Chained {
		return NewChain(m)
	}
	return NewMedusa(m, output)
}

// NewMedusa returns the drafter of one sequence; output is the index of the heads'
// output in the engine's graph.
func NewMedusa(m *manifest.Medusa, output int) *Medusa {
	d := &Medusa{heads: m.Heads, columns: m.Columns, output: output, fixed: m.Tree}
	p := medusaFirst
	for i := range m.Heads {
		ranks := make([]float64, min(medusaRanks, m.Columns))
		if i < len(m.Accuracy) {
			copy(ranks, m.Accuracy[i])
		} else {
			for r := range ranks {
				ranks[r] = p / float64(1+3*r)
			}
			p *= medusaFall
		}
		d.accuracy = append(d.accuracy, ranks)
		d.weight = append(d.weight, medusaPrior)
		d.tops = append(d.tops, nil)
	}
	return d
}

// Reads implements RowReader.
func (d *Medusa) Reads() bool { return !d.backoff.Active() }

// ReadRows implements RowReader.
func (d *Medusa) ReadRows(row func(output int) []float32) { d.row = row(d.output) }

// Propose implements Drafter.
func (d *Medusa) Propose(_ []int32, room Room) Draft {
	row := d.row
	room = room.Open()
	d.row, d.known = nil, row != nil
	if row == nil {
		if d.backoff.Step(); room.Time == nil { // no back-off if steps cost nothing
			d.backoff.Stop()
		}
		return Draft{}
	}
	if !d.explore(room) {
		d.choose(room)
	}
	d.rank(row)
	if d.plan == nil {
		if d.backoff.Failed() {
			d.age = 0
		}
		return Draft{}
	}
	d.backoff.Reset()
	d.tree.Tokens, d.tree.Parent = d.tree.Tokens[:0], d.tree.Parent[:0]
	for i, parent := range d.plan.Parent {
		if i == room.Nodes {
			break
		}
		d.tree.Tokens = append(d.tree.Tokens, d.tops[d.plan.Depth[i]-1][d.plan.Rank[i]])
		d.tree.Parent = append(d.tree.Parent, parent)
	}
	return Draft{Tree: d.tree}
}

// medusaSizes are tree sizes to try if the engine has not measured such steps, provided
// they would pay at a cost of medusaCheap per node. Steps of a few tokens often cost
// the same as one, which steps of two tokens do not show.
var medusaSizes = [...]int{3, 5, 7}

const medusaCheap = 0.03

// explore drafts a tree of a size that was not measured. It returns false if there is
// no such size to try.
func (d *Medusa) explore(room Room) bool {
	if d.fixed != nil {
		return false
	}
	for _, n := range medusaSizes {
		if n > room.Nodes || !room.untried(n) {
			continue
		}
		tree := medusa.Optimize(d.accuracy, n, func(_ float64, nodes int) float64 { return float64(nodes) })
		if (room.Others+1+d.accuracy.Expected(tree))/(room.Others+1) <= 1+medusaCheap*float64(n) {
			continue
		}
		plan, err := medusa.NewPlan(tree)
		if err != nil {
			panic("bug: " + err.Error())
		}
		d.plan, d.age = plan, 0 // choose decides again at the next draft
		return true
	}
	return false
}

// choose selects the tree that pays most, every medusaRetree drafts.
func (d *Medusa) choose(room Room) {
	d.age++
	if d.age%medusaRetree != 1 {
		return
	}
	rate := func(accepted float64, nodes int) float64 {
		if nodes == 0 {
			return room.Rate(0, 0, 0)
		}
		return room.Rate(accepted, nodes, room.HeadTime)
	}
	d.plan = nil
	if d.fixed != nil {
		if n := d.fixed.Nodes(); room.untried(n) || rate(d.accuracy.ExpectedOf(d.fixed), n) > rate(0, 0) {
			d.plan = d.fixed
		}
		return
	}
	tree := medusa.Optimize(d.accuracy, min(room.Nodes, medusaNodes), rate)
	if len(tree) == 0 {
		return
	}
	plan, err := medusa.NewPlan(tree)
	if err != nil {
		panic("bug: " + err.Error())
	}
	d.plan = plan
}

// rank finds the best candidates of each head.
func (d *Medusa) rank(row []float32) {
	n := medusaRanks
	if d.fixed != nil {
		for _, r := range d.fixed.Rank {
			n = max(n, int(r)+1)
		}
	}
	n = min(n, d.columns)
	for i := range d.heads {
		d.tops[i], d.rows = largest(d.tops[i][:0], d.rows[:0], row[i*d.columns:][:d.columns], n)
	}
}

// largest appends the indices of the n largest values of row in descending order, lower
// indices first among equals, and their values to values.
func largest(top []int32, values []float32, row []float32, n int) ([]int32, []float32) {
	for i, v := range row {
		if len(top) == n && v <= values[n-1] {
			continue
		}
		if len(top) < n {
			top, values = append(top, 0), append(values, 0)
		}
		at := len(top) - 1
		for at > 0 && values[at-1] < v {
			top[at], values[at] = top[at-1], values[at-1]
			at--
		}
		top[at], values[at] = int32(i), v
	}
	return top, values
}

// Observe implements Drafter.
func (d *Medusa) Observe(tokens []int32) {
	if !d.known {
		return
	}
	d.known = false
	for i, token := range tokens {
		if i == d.heads {
			return
		}
		d.weight[i] = min(d.weight[i]+1, medusaMemory)
		for r := range d.accuracy[i] {
			hit := 0.0
			if r < len(d.tops[i]) && d.tops[i][r] == token {
				hit = 1
			}
			d.accuracy[i][r] += (hit - d.accuracy[i][r]) / d.weight[i]
		}
	}
}
