package grammar

import (
	"slices"
	"strings"
)

// An expr is a schema as a Boolean expression. Equal expressions are the same node, so
// recursive schemas that are combined with others remain finite.
type expr struct {
	id     int32
	op     exprOp
	kids   []*expr
	leaf   shapeSet // of a leaf: at most one shape of each kind
	schema *object  // of a schema: read when it is needed
	body   *expr    // of a schema that was read
	open   bool     // of a schema that is being read
	scope  *scope   // of a schema
	path   string   // in the schema, for errors
}

type exprOp uint8

const (
	exprAny    exprOp = iota // all values
	exprNone                 // no value
	exprAll                  // values of all kids
	exprSome                 // values of one or more kids
	exprNot                  // values outside of its kid
	exprLeaf                 // values of one or more shapes
	exprSchema               // values of a schema object
)

// exprs are the expressions of one schemaWriter.
type exprs struct {
	list      []*expr
	schemas   map[schemaKey]*expr
	combined  map[string]*expr
	any, none *expr
}

func newExprs() *exprs {
	n := &exprs{schemas: map[schemaKey]*expr{}, combined: map[string]*expr{}}
	n.any, n.none = n.add(&expr{op: exprAny}), n.add(&expr{op: exprNone})
	return n
}

func (n *exprs) add(x *expr) *expr {
	x.id = int32(len(n.list))
	n.list = append(n.list, x)
	return x
}

// node returns the node of a schema.
func (w *schemaWriter) node(schema any, path string) *expr {
	switch s := schema.(type) {
	case bool:
		if s {
			return w.exprs.any
		}
		return w.exprs.none
	case *object:
		key := schemaKey{s, w.enter(s)}
		x := w.exprs.schemas[key]
		if x == nil {
			x = w.exprs.add(&expr{op: exprSchema, schema: s, path: shortened(path), scope: key.scope})
			w.exprs.schemas[key] = x
		}
		return x
	}
	w.fail(path, "expected an object, true or false, found %.40s", writeJSON(schema))
	return w.exprs.none
}

// maxPath limits the bytes of a path. Each node of a schema keeps one.
const maxPath = 1000

// shortened returns a path with at most maxPath bytes and a mark where it was cut.
func shortened(path string) string {
	if len(path) <= maxPath {
		return path
	}
	return strings.ToValidUTF8(path[:maxPath], "") + "…"
}

func (w *schemaWriter) leaf(set shapeSet, path string) *expr {
	return w.exprs.add(&expr{op: exprLeaf, leaf: set, path: path})
}

// all returns the node of the values of all kids.
func (w *schemaWriter) all(kids ...*expr) *expr { return w.combine(exprAll, kids) }

// some returns the node of the values of one or more kids.
func (w *schemaWriter) some(kids ...*expr) *expr { return w.combine(exprSome, kids) }

func (w *schemaWriter) combine(op exprOp, kids []*expr) *expr {
	neutral, dominant := w.exprs.any, w.exprs.none
	if op == exprSome {
		neutral, dominant = dominant, neutral
	}
	var list []*expr
	seen := map[*expr]bool{}
	add := func(k *expr) {
		if k != neutral && !seen[k] {
			seen[k] = true
			list = append(list, k)
		}
	}
	for _, k := range kids {
		if k.op != op {
			add(k)
			continue
		}
		for _, inner := range k.kids {
			add(inner)
		}
	}
	if seen[dominant] || slices.ContainsFunc(list, func(k *expr) bool { return k.op == exprNot && seen[k.kids[0]] }) {
		return dominant
	}
	switch len(list) {
	case 0:
		return neutral
	case 1:
		return list[0]
	}
	if !w.spend(len(list), list[0].path) {
		return w.exprs.none
	}
	return w.interned(op, list)
}

// not returns the node of the values outside of another.
func (w *schemaWriter) not(k *expr) *expr {
	switch k.op {
	case exprAny:
		return w.exprs.none
	case exprNone:
		return w.exprs.any
	case exprNot:
		return k.kids[0]
	}
	return w.interned(exprNot, []*expr{k})
}

// interned returns the node of an operation, which ignores the order of its kids.
func (w *schemaWriter) interned(op exprOp, kids []*expr) *expr {
	ids := make([]int32, len(kids))
	for i, k := range kids {
		ids[i] = k.id
	}
	slices.Sort(ids)
	key := appendKey([]byte{byte(op)}, ids...)
	x := w.exprs.combined[string(key)]
	if x == nil {
		x = w.exprs.add(&expr{op: op, kids: kids, path: kids[0].path})
		w.exprs.combined[string(key)] = x
	}
	return x
}

// body returns the expression of a schema object. Proofs about other schemas may ask for
// it while it is being read; nothing that depends on it is certain then.
func (w *schemaWriter) body(n *expr) *expr {
	switch {
	case n.body != nil:
	case n.open && w.proofs > 0:
		w.unsure = true
		return w.exprs.none
	case n.open:
		w.refersToItself(n)
		return w.exprs.none
	default:
		n.open = true
		w.within(n, func() { n.body = w.read(n.schema, n.path) })
	}
	return n.body
}

func (w *schemaWriter) refersToItself(n *expr) {
	w.fail(n.path, "%.80q refers to itself without a property or an item in between, so no value can be validated against it", "#"+n.path)
}

// holds reports whether a value is valid against a node, in the current reading.
func (w *schemaWriter) holds(v any, n *expr) bool {
	if w.depth++; w.depth > maxDepth {
		w.fail(n.path, "schemas are nested deeper than %d, or references are cyclic", maxDepth)
	}
	defer func() { w.depth-- }()
	if !w.spend(4, n.path) {
		return false
	}
	switch n.op {
	case exprAny:
		return true
	case exprAll:
		return !slices.ContainsFunc(n.kids, func(k *expr) bool { return !w.holds(v, k) })
	case exprSome:
		return slices.ContainsFunc(n.kids, func(k *expr) bool { return w.holds(v, k) })
	case exprNot:
		return !w.reading(!w.loose, func() bool { return w.holds(v, n.kids[0]) }) && w.err == nil
	case exprLeaf:
		return slices.ContainsFunc(n.leaf[kindOf(v)], func(s *shape) bool { return w.fits(v, s, n.path) })
	case exprSchema:
		return w.holds(v, w.body(n))
	}
	return false
}

// reading calls evaluate with w.loose set to loose.
func (w *schemaWriter) reading(loose bool, evaluate func() bool) bool {
	before := w.loose
	defer func() { w.loose = before }()
	w.loose = loose
	return evaluate()
}

// A setKey identifies the shapes of a node, or of the values outside of it, in a
// reading.
type setKey struct {
	node       int32
	not, loose bool
}

// shapes returns the shapes of a node's values; with not, of all other values.
func (w *schemaWriter) shapes(n *expr, not bool) shapeSet {
	key := setKey{n.id, not, w.loose}
	set, known := w.sets[key]
	switch {
	case w.err != nil:
		return shapeSet{}
	case !known:
	case set == nil && w.proofs > 0:
		w.unsure = true
		return everything()
	case set == nil:
		w.refersToItself(n)
		return shapeSet{}
	default:
		return *set
	}
	if !w.spend(1, n.path) {
		return shapeSet{}
	}
	if w.depth++; w.depth > 4*maxDepth {
		w.fail(n.path, "schemas are nested deeper than %d", maxDepth)
		return shapeSet{}
	}
	w.sets[key] = nil
	found := w.findShapes(n, not)
	if w.depth--; w.unsure || w.err != nil {
		delete(w.sets, key)
	} else {
		w.sets[key] = &found
	}
	return found
}

func (w *schemaWriter) findShapes(n *expr, not bool) shapeSet {
	switch n.op {
	case exprAny, exprNone:
		if (n.op == exprAny) != not {
			return everything()
		}
		return shapeSet{}
	case exprNot:
		return w.shapes(n.kids[0], !not)
	case exprSchema:
		return w.shapes(w.body(n), not)
	case exprLeaf:
		if not {
			return w.outside(n.leaf, n.path)
		}
		return n.leaf
	}
	if (n.op == exprSome) != not {
		return w.union(n, not)
	}
	var out shapeSet
	for i, k := range n.kids {
		set := w.shapes(k, not)
		if i == 0 {
			out = set
		} else {
			out = w.both(out, set, n.path)
		}
	}
	return out
}

// union returns the values that are in one or more of an expression's kids; with not,
// those that are outside of one or more.
func (w *schemaWriter) union(n *expr, not bool) shapeSet {
	var out shapeSet
	for _, kid := range n.kids {
		for k, list := range w.shapes(kid, not) {
			if out[k] = append(out[k], list...); len(out[k]) > 2*maxShapes {
				out[k] = w.checked(w.simplified(out[k], n.path), n.path)
			}
		}
	}
	for k, list := range out {
		out[k] = w.absorbed(w.checked(w.simplified(list, n.path), n.path), n.path)
	}
	return out
}
