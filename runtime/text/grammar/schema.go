package grammar

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ParseSchema compiles a JSON Schema: draft 2020-12, and older drafts where they
// differ. The grammar matches the JSON values that are valid against the schema, with
// the properties of objects in the order of the schema. White space is one optional
// space after a colon or a comma, and nothing else. So it cannot run away, and models
// can use their usual style.
//
// A schema is never weakened silently. A keyword that cannot be enforced exactly together
// with the others is an error that names it. One that no validator could apply, because
// its value is of another type, is ignored with a warning, and so is a word that looks
// like a misspelled keyword; see Warnings. Other unknown keywords are annotations, as JSON
// Schema says. Known formats are enforced; an unknown format is ignored.
func ParseSchema(schema []byte) (*Grammar, error) {
	root, err := readJSON(schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	w := newSchemaWriter(root)
	return w.finish(w.value(w.node(root, "")))
}

// AnyObject returns the grammar of all JSON objects.
func AnyObject() *Grammar {
	w := newSchemaWriter(nil)
	g, err := w.finish(w.properties(nil))
	if err != nil {
		panic("bug: " + err.Error())
	}
	return g
}

// ParseRegex returns the grammar of the texts that match the whole pattern.
func ParseRegex(pattern string) (*Grammar, error) {
	re, err := regex(pattern)
	if err != nil {
		return nil, err
	}
	b := &builder{}
	p, ok := b.pattern(re, plainText, true)
	if !ok {
		return nil, fmt.Errorf("pattern %q: anchors are only supported at the start and the end of the pattern and of its alternatives", pattern)
	}
	root := b.rule("pattern")
	b.define(root, p)
	return b.finish(root)
}

// schemaWriter writes the network of a schema.
type schemaWriter struct {
	b            *builder
	root         any
	documents    *documents // targets of references; see lookup
	exprs        *exprs
	sets         map[setKey]*shapeSet // nil while the shapes are determined
	rules        map[ruleKey]int32    // rules of nodes
	named        map[string]int32     // rules of this package: strings, any value
	known        map[*object]bool     // schemas with checked keywords
	patterns     map[patternKey]*pattern
	namePatterns map[string]*expr // names that match a pattern
	unusual      []string         // names in the schema that dialects may read differently; see scan
	textIDs      map[string]int32
	conditions   map[any]int32 // numbers of conditions; see listed
	tests        map[readTest]testMachine
	valueKeys    map[*shape]map[string]bool
	noText       map[string]bool   // whether no string meets tests
	apart        map[[2]int32]bool // nodes that are known to be disjoint, or not
	proofs       int               // that are under way; see prove
	unsure       bool              // the current proof met a set that is being determined
	scope        *scope            // of the schema that is being read
	loose        bool              // the reading; see readPattern and patternOf
	format       CallFormat        // of the call whose arguments are written
	closing      bool              // arguments are written: only declared ones; see opened
	mode         mode
	exact        bool // equal values are written alike, except for white space and the order of undeclared names
	depth        int
	work         int // see spend
	most         int // limit of work
	warnings     []string
	err          error
}

func newSchemaWriter(root any) *schemaWriter {
	w := &schemaWriter{b: &builder{}, named: map[string]int32{}, textIDs: map[string]int32{}, most: maxWork}
	w.open(root)
	return w
}

// open starts a document, in which references are resolved.
func (w *schemaWriter) open(root any) {
	w.root, w.documents, w.exprs = root, newDocuments(root), newExprs()
	w.sets, w.rules, w.known = map[setKey]*shapeSet{}, map[ruleKey]int32{}, map[*object]bool{}
	w.patterns, w.namePatterns, w.tests = map[patternKey]*pattern{}, map[string]*expr{}, map[readTest]testMachine{}
	w.unusual = nil
	w.scan(root, "", 0)
	slices.Sort(w.unusual)
	w.unusual = slices.Compact(w.unusual)
	w.conditions = map[any]int32{}
	w.valueKeys, w.apart, w.noText = map[*shape]map[string]bool{}, map[[2]int32]bool{}, map[string]bool{}
}

// maxWork limits the work of combining and comparing schemas and of building the
// automata of strings. A unit is about 0.1 µs: of the schemas of TestHostileSchemas, the
// slowest takes 1 s. Half of it refused 3 of 1,260 random schemas that were accepted when
// less was counted.
const maxWork = 4_000_000

// spend counts work. It records an error and returns false when the limit is exceeded.
func (w *schemaWriter) spend(units int, path string) bool {
	if w.work += units; w.work > w.most {
		w.fail(path, "merging and comparing the schemas takes more than %d steps; use fewer or smaller schemas, and shorter patterns and lengths", maxWork)
	}
	return w.err == nil
}

func (w *schemaWriter) finish(p part) (*Grammar, error) {
	if w.err != nil {
		return nil, w.err
	}
	root := w.b.rule("schema")
	w.b.define(root, p)
	g, err := w.b.finish(root)
	if err != nil && w.b.err == nil && !w.b.rules[root].productive {
		return nil, errors.New("schema: no value is valid, so the grammar matches no text; remove one of the keywords that exclude each other")
	}
	if err == nil {
		g.warnings = w.warnings
	}
	return g, err
}

// fail records the first error, with its location in the schema.
func (w *schemaWriter) fail(path, format string, args ...any) part {
	if w.err == nil {
		w.err = fmt.Errorf("schema at %s: %s", shortened(cmp.Or(path, "/")), fmt.Sprintf(format, args...))
	}
	return w.b.nothing()
}

// value writes the values of a node.
func (w *schemaWriter) value(n *expr) part {
	if w.depth++; w.depth > maxDepth {
		return w.fail(n.path, "schemas are nested deeper than %d", maxDepth)
	}
	defer func() { w.depth-- }()
	if w.err != nil || w.b.err != nil {
		return w.b.nothing()
	}
	key := ruleKey{n.id, w.mode, w.exact}
	r, known := w.rules[key]
	if !known {
		r = w.b.rule("the schema at " + n.path + "/")
		w.rules[key] = r
		w.b.define(r, w.write(w.shapes(n, false), n.path))
	}
	if w.err == nil && w.b.err != nil {
		w.err = fmt.Errorf("schema at %s: %w; use shorter lengths, fewer digits or fewer alternatives", cmp.Or(n.path, "/"), w.b.err)
	}
	return w.b.call(r)
}

// A ruleKey identifies the rule of an expression in a mode.
type ruleKey struct {
	node  int32
	mode  mode
	exact bool
}

// child writes a nested value.
func (w *schemaWriter) child(n *expr) part { return w.in(w.mode.inner(), n) }

// write writes the values of a set.
func (w *schemaWriter) write(set shapeSet, path string) part {
	var parts []part
	mode := w.mode
	for k, list := range w.inMode(set) {
		if kind(k) == kindString {
			parts = append(parts, w.texts(list, path)...)
			continue
		}
		for _, s := range list {
			if w.err != nil || w.b.err != nil {
				return w.b.nothing()
			}
			if k := kind(k); k == kindArray || k == kindObject && !mode.top() {
				w.mode = mode.inner()
			}
			p := w.shape(kind(k), s, path)
			w.mode = mode
			parts = append(parts, w.kind(false, p))
		}
	}
	return w.b.alt(parts...)
}

// texts writes the strings of shapes.
func (w *schemaWriter) texts(list []*shape, path string) []part {
	var parts []part
	var groups [][]textTest
	for _, s := range list {
		if s.values == nil {
			groups = append(groups, s.texts)
		} else if w.err == nil && w.b.err == nil {
			parts = append(parts, w.kind(true, w.constants(s.values, path)))
		}
	}
	if len(groups) > 0 && w.err == nil && w.b.err == nil {
		parts = append(parts, w.kind(true, w.strings(groups)))
	}
	return parts
}

// shape writes the values of a shape, except strings.
func (w *schemaWriter) shape(k kind, s *shape, path string) part {
	if s.values != nil {
		if w.mode == asArguments {
			return w.fail(path, "enum and const of all arguments together are not supported in the model's format of tool calls; put them into properties")
		}
		return w.constants(s.values, path)
	}
	switch k {
	case kindTrue, kindFalse:
		return w.word(k == kindTrue)
	case kindNumber:
		return w.number(s.number)
	case kindArray:
		return w.array(s.array)
	case kindObject:
		return w.properties(s.object)
	}
	return w.word(nil)
}

func (w *schemaWriter) enclosed(open, shut string, inside part) part {
	return w.b.seq(w.b.literal(open), inside, w.b.literal(shut))
}

func (w *schemaWriter) comma() part { return w.b.seq(w.b.literal(","), w.space()) }

func (w *schemaWriter) member(key, value part) part {
	return w.b.seq(key, w.b.literal(":"), w.space(), value)
}
