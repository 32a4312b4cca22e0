package jinja

// An expr is an expression node.
type expr interface{ eval(s *state) Value }

// A stmt is a statement node, which writes output or changes variables.
type stmt interface{ exec(s *state) signal }

// A signal tells how a statement ended.
type signal int

const (
	goOn signal = iota
	breakLoop
	continueLoop
)

type (
	constExpr struct{ value Value }
	nameExpr  struct{ name string }
	listExpr  struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, values []expr }
	attrExpr struct {
		of   expr
		name string
	}
	itemExpr  struct{ of, key expr }
	sliceExpr struct{ of, from, to, step expr } // nil: omitted
	callExpr  struct {
		of   expr
		args argExprs
	}
	filterExpr struct {
		of   expr // nil: body of a filter block
		name string
		args argExprs
	}
	testExpr struct {
		of   expr
		name string
		args argExprs
	}
	condExpr  struct{ test, yes, no expr } // no may be nil
	notExpr   struct{ of expr }
	logicExpr struct {
		x, y expr
		and  bool
	}
	signExpr struct {
		of       expr
		negative bool
	}
	binaryExpr struct {
		op   string
		x, y expr
	}
	concatExpr  struct{ items []expr }
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
	}
)

// argExprs are the arguments of a call.
type argExprs struct {
	pos      []expr
	names    []string
	named    []expr
	rest     expr // *list
	restDict expr // **dict
}

type (
	textStmt  struct{ text string }
	printStmt struct {
		of   expr
		line int
	}
	ifStmt struct {
		test expr
		yes  []stmt
		no   []stmt
		line int
	}
	forStmt struct {
		target    target
		in        expr
		filter    expr // nil: all items
		body      []stmt
		otherwise []stmt
		recursive bool
		line      int
	}
	setStmt struct {
		target target
		value  expr
		line   int
	}
	setBlockStmt struct {
		target target
		filter *filterExpr // nil: none
		body   []stmt
		line   int
	}
	macroStmt struct {
		def  *macroDef
		line int
	}
	callStmt struct {
		call   *callExpr
		caller *macroDef
		line   int
	}
	filterStmt struct {
		filter *filterExpr
		body   []stmt
		line   int
	}
	withStmt struct {
		targets []target
		values  []expr
		body    []stmt
		line    int
	}
	blockStmt struct{ body []stmt } // {% generation %}
	loopStmt  struct{ signal signal }
)

// A macroDef is the definition of a macro.
type macroDef struct {
	name     string
	params   []string
	defaults []expr // of the last params
	body     []stmt
	varargs  bool // the body uses varargs, kwargs or caller
	kwargs   bool
	caller   bool
}

// A target is the left side of an assignment: a name, an attribute of a namespace, or a
// tuple of targets.
type target struct {
	name  string
	attr  string // of the namespace with this name
	tuple []target
}
