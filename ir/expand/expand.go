// Package expand evaluates modules written as text: it computes their parameters, finds their
// tensors, and adds their ops to a graph.
package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A Tensor is a stored tensor.
type Tensor struct {
	File      string            // its name in the file
	Pattern   string            // the name with {i}, {j} for its numbers
	Transform *tensor.Transform // that reads it, as a matrix of outputs by inputs
	Shape     []int             // of what the transform makes
	Type      tensor.DType      // as it is stored
	Computed  bool              // the transform changes the order of elements
}

// A Weight is a weight that a module reads.
type Weight struct {
	Path, Name string   // of the module's instance, and of the weight in the module
	Std        string   // standard name of its first tensor
	Stds       []string // and of all
	Transform  *tensor.Transform
	Shape      []int
	Free       bool // a size of it is that of the file
	Count      int  // of an array of weights that one op reads; 0: one weight
	Tensors    []Tensor
	Computed   bool // its elements are no stored elements
}

// A Host is the model that modules are expanded for.
type Host interface {
	// Tensor returns the stored tensor of a standard name.
	Tensor(std string) (Tensor, bool)
	// Read records that a module knows a tensor, though no weight is made of it, and reports
	// whether it is stored.
	Read(std string) bool
	// Same reports whether two stored tensors are not known to differ, in shape or values.
	Same(a, b string) bool
	// Values returns the numbers of a stored tensor, and records that they are read.
	Values(std string) ([]float64, error)
	// Config returns the value of a key of config.json, for an instance of a path.
	Config(path, key string) (any, bool)
	// Library returns the library of the modules below an instance of a path; nil: that of the
	// expander.
	Library(path string) *Library
	// Param returns what the model sets a parameter to, for an instance of a module at a path.
	Param(p *Declared, m *Reader, path string) (any, bool)
	// Weight returns the weight of the graph.
	Weight(w *Weight) (*ir.Value, error)
	// State returns the state of an instance of a module.
	State(path, name string, s *ir.StateType) (*ir.Value, error)
	// StateElem returns the element type of a field of rows, which has at least so many bits.
	StateElem(field string, bits int) tensor.DType
	// Op adds an op to the graph and returns its results, which have names like the given
	// ones; one name is for all.
	Op(def *ir.OpDef, args []*ir.Value, attrs ir.Attrs, names []string) ([]*ir.Value, error)
	// Name gives a result of an op the name that the module has for it.
	Name(v *ir.Value, name string)
	// Layer begins a layer of the given index; layer -1 ends it.
	Layer(index int)
	// Graph begins a graph, which Results ends.
	Graph(name string, dims []*ir.Dim) error
	// Input declares an input of the graph.
	Input(name string, t ir.Type) (*ir.Value, error)
	// Results ends the graph with values that have the given names in it.
	Results(names []string, values []*ir.Value) error
}

// An Error is what is wrong with a module, or with a model that it does not fit.
type Error struct {
	Pos    lexer.Position
	Path   string // of the instance
	Msg    string
	Line   string      // of the text; "": the message says all
	Reader *Reader     // the instance's module; nil: the text is wrong for all
	Params []*Declared // in a condition that is false or in sizes
	Config []string    // keys of config.json there
	Std    string      // standard name of the tensor that is missing, or of the wrong shape
	Absent bool        // it is missing
}

// Error returns the place, the instance, the message, and the line with a caret.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s:%d:%d: ", e.Pos.Filename, e.Pos.Line, e.Pos.Column)
	if e.Path != "" {
		text += e.Path + ": "
	}
	return text + e.Msg + e.caret("  ")
}

// Place returns where the error is in the text of modules: lines that are indented.
func (e *Error) Place() string {
	text := fmt.Sprintf("  %s:%d", e.Pos.Filename, e.Pos.Line)
	if e.Reader != nil {
		text += ", module " + e.Reader.Module
	}
	if e.Path != "" {
		text += " at " + e.Path
	}
	return text + e.caret("    ")
}

// caret returns the line of the error, and one with a caret below its column.
func (e *Error) caret(indent string) string {
	if e.Line == "" {
		return ""
	}
	line := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, e.Line)
	return "\n" + indent + line + "\n" + indent + strings.Repeat(" ", min(max(e.Pos.Column-1, 0), len(line))) + "^"
}

// Limits of an expansion, because modules are untrusted text.
const (
	maxSteps = 1_000_000
	maxOps   = 100_000
	maxCalls = 64
	maxList  = 65_536
	maxText  = 1 << 20
)

// An Expander expands modules of a library for a host.
type Expander struct {
	lib   *Library
	host  Host
	ops   map[string]*ir.OpDef
	steps int
	limit int               // of steps
	made  int               // ops
	born  map[*ir.Value]int // results of ops by the number of the op
	free  []*scope

	writing *frame // whose graph is being written
	layered bool   // in a layer
}

// New returns an expander of the modules of a library.
func New(lib *Library, ops ir.OpSet, host Host) *Expander {
	x := &Expander{lib: lib, host: host, limit: maxSteps, ops: make(map[string]*ir.OpDef, len(ops)), born: map[*ir.Value]int{}}
	for _, d := range ops {
		x.ops[d.Name] = d
	}
	return x
}

// Call expands a module for arguments, as an instance of the given path, and returns its
// results. Arguments are values of graphs and what parameters can be.
func (x *Expander) Call(module, path string, args []any, named map[string]any) (results []any, err error) {
	m, err := x.lib.module(module)
	if err != nil {
		return nil, err
	}
	defer catch(&err)
	f := &frame{Expander: x, lib: x.lib, module: m, path: path, at: m.Pos, vars: x.scope()}
	f.bind(args, named)
	return f.run(), nil
}

// A frame is an instance of a module that is being expanded.
type frame struct {
	*Expander
	lib    *Library // that has the module
	caller *frame
	depth  int
	module *module
	path   string
	at     lexer.Position // of what is being evaluated
	vars   *scope         // values and weights with their signs, variables and parameters
	args   map[string]bool
	vector bool // the weight being declared may be stored as a matrix
	each   int  // number of weights in the array being declared; 0: none
	result []any
	done   bool
	dims   []*ir.Dim // of the graph being written
	words  bool      // of an expression that Evaluate evaluates
}

// A failure is the error with which an expansion ends by a panic.
type failure struct{ error }

// catch sets the error of a function whose evaluation ended with a failure. It is deferred.
func catch(err *error) {
	if r := recover(); r != nil {
		failed, ok := r.(failure)
		if !ok {
			panic(r)
		}
		*err = failed.error
	}
}

// fail ends the expansion with an error at the place that is being evaluated.
func (f *frame) fail(format string, args ...any) {
	panic(failure{f.error(fmt.Sprintf(format, args...), "")})
}

// missing ends the expansion because a tensor is not stored.
func (f *frame) missing(std string) {
	err := f.error("tensor "+std+": missing", std)
	err.Absent = true
	panic(failure{err})
}

// error returns an error at the place that is being evaluated, about a tensor if std is not "".
// Parameters of the module in the given expressions are likely reasons.
func (f *frame) error(msg, std string, because ...*syntax.Expr) *Error {
	err := &Error{Pos: f.at, Path: f.path, Msg: msg, Line: f.lib.line(f.at), Reader: &f.module.reader, Std: std}
	for _, e := range because {
		for _, name := range namesIn(e, nil) {
			if key, ofConfig := strings.CutPrefix(name, "$"); ofConfig {
				err.Config = append(err.Config, key)
			}
			if p := f.module.params[name]; p != nil {
				err.Params = append(err.Params, &p.home)
			}
		}
	}
	return err
}

// step counts what is evaluated.
func (f *frame) step(at lexer.Position) {
	f.at = at
	f.spend(1)
}

func (f *frame) spend(steps int) {
	if f.steps += steps; f.steps > f.limit {
		f.fail("the modules take more than %d steps", f.limit)
	}
}

// bind binds the arguments of the module: by position, then by name. Other names are of
// parameters.
func (f *frame) bind(args []any, named map[string]any) {
	m := f.module
	if len(args) > len(m.Args) {
		f.fail("module %s has %d arguments, expected %s", m.Name, len(args), signature(m))
	}
	for i, a := range m.Args {
		switch v, ok := named[a.Name]; {
		case i < len(args):
			f.vars.set(a.Name, args[i])
			if ok {
				f.fail("module %s: argument %s is given twice", m.Name, a.Name)
			}
		case ok:
			f.vars.set(a.Name, v)
		case a.Default != nil:
			f.vars.set(a.Name, f.eval(a.Default))
		default:
			f.fail("module %s has no argument %s, expected %s", m.Name, a.Name, signature(m))
		}
	}
	for name, v := range named {
		if v == nil { // as if it were not given
			continue
		}
		if !hasArg(m, name) {
			p := m.params[name]
			if p == nil {
				f.fail("module %s has no argument or parameter %s%s", m.Name, name, spelling.DidYouMean(name, argNames(m)))
			}
			f.vars.set(name, f.convert(p, v))
			if f.args == nil {
				f.args = map[string]bool{}
			}
			f.args[name] = true
		}
	}
}

func hasArg(m *module, name string) bool {
	for _, a := range m.Args {
		if a.Name == name {
			return true
		}
	}
	return false
}

// argNames returns the names that a call of a module may use.
func argNames(m *module) (names []string) {
	for _, a := range m.Args {
		names = append(names, a.Name)
	}
	return append(names, slices.Sorted(maps.Keys(m.params))...)
}

// signature returns how a module is called.
func signature(m *module) string {
	var parts []string
	for _, a := range m.Args {
		parts = append(parts, a.Name)
	}
	return m.Name + "(" + strings.Join(parts, ", ") + ")"
}

// run evaluates the module's items and returns its results.
func (f *frame) run() []any {
	for _, it := range f.module.Items {
		switch {
		case f.done:
			f.at = f.module.Pos
			return f.result
		case it.Param != nil:
			f.param(f.module.params[it.Param.Name])
		case it.Use != nil:
			for _, name := range it.Use.Names {
				f.param(f.module.params[name])
			}
		case it.Graph != nil:
			f.graph(it.Graph)
		default:
			f.stmt(it.Stmt)
		}
	}
	return f.result
}

// call expands a module of a library that this one calls.
func (f *frame) call(lib *Library, m *module, e *syntax.Expr, path string, args []any, named map[string]any) []any {
	for c := f; c != nil; c = c.caller {
		if c.module == m {
			f.fail("module %s calls itself", m.Name)
		}
	}
	if f.depth >= maxCalls {
		f.fail("calls of modules nest deeper than %d", maxCalls)
	}
	in := &frame{Expander: f.Expander, lib: lib, caller: f, depth: f.depth + 1, module: m, path: path, at: e.Pos, vars: f.scope()}
	in.bind(args, named)
	results := in.run()
	f.free = append(f.free, in.vars)
	return results
}
