package jinja

type filterFunc func(s *state, a args) Value

// allFilters lists Jinja's filters and transformers' tojson, without those for web
// pages (urlize, xmlattr, striptags). It is a function because some filters look up
// others by name, which would be an initialization cycle.
func allFilters() map[string]filterFunc {
	return map[string]filterFunc{
		"tojson":         tojson,
		"string":         func(s *state, a args) Value { return toStr(s, a.bind("string", "value")[0]) },
		"safe":           func(s *state, a args) Value { return toStr(s, a.bind("safe", "value")[0]) },
		"escape":         escape,
		"e":              escape,
		"forceescape":    escape,
		"upper":          textFilter("upper", upper),
		"lower":          textFilter("lower", lower),
		"capitalize":     textFilter("capitalize", capitalize),
		"title":          textFilter("title", titleWords),
		"trim":           trimFilter,
		"replace":        replaceFilter,
		"indent":         indentFilter,
		"center":         centerFilter,
		"truncate":       truncateFilter,
		"wordcount":      wordcountFilter,
		"wordwrap":       wordwrapFilter,
		"urlencode":      urlencodeFilter,
		"format":         formatFilter,
		"join":           joinFilter,
		"length":         lengthFilter,
		"count":          lengthFilter,
		"default":        defaultFilter,
		"d":              defaultFilter,
		"int":            intFilter,
		"float":          floatFilter,
		"abs":            absFilter,
		"round":          roundFilter,
		"filesizeformat": filesizeFilter,
		"first":          firstFilter,
		"last":           lastFilter,
		"list":           func(s *state, a args) Value { return NewList(items(s, a.bind("list", "value")[0])...) },
		"reverse":        reverseFilter,
		"sort":           sortFilter,
		"unique":         uniqueFilter,
		"min":            extremeFilter("min", -1),
		"max":            extremeFilter("max", 1),
		"sum":            sumFilter,
		"batch":          batchFilter,
		"slice":          sliceFilter,
		"groupby":        groupbyFilter,
		"dictsort":       dictsortFilter,
		"items":          itemsFilter,
		"attr":           attrFilter,
		"map":            mapFilter,
		"select":         selectFilter("select", true, false),
		"reject":         selectFilter("reject", false, false),
		"selectattr":     selectFilter("selectattr", true, true),
		"rejectattr":     selectFilter("rejectattr", false, true),
	}
}

// textFilter returns a filter of a value's text.
func textFilter(name string, f func(Str) Str) filterFunc {
	return func(s *state, a args) Value {
		text := toStr(s, a.bind(name, "s")[0])
		s.charge(len(text.s) / 8)
		return s.made(f(text))
	}
}

func defaultFilter(_ *state, a args) Value {
	p := a.bind("default", "value", "default_value=''", "boolean=false")
	if _, missing := p[0].(*undefined); missing || truth(p[2]) && !truth(p[0]) {
		return p[1]
	}
	return p[0]
}

func lengthFilter(s *state, a args) Value {
	switch v := a.bind("length", "obj")[0].(type) {
	case Str:
		s.charge(len(v.s) / 16)
		return int64(v.length())
	case *List:
		return int64(len(v.items))
	case *Dict:
		return int64(len(v.keys))
	case *view:
		return int64(len(v.dict.keys))
	case pyRange:
		return int64(v.len())
	case *undefined:
		return int64(0)
	case *loop:
		return int64(len(v.items))
	default:
		fail("TypeError: object of type '%s' has no len()", typeName(v))
		return nil
	}
}

func firstFilter(s *state, a args) Value {
	v := a.bind("first", "seq")[0]
	if g, ok := v.(*generator); ok && len(g.items) > 0 {
		first := g.items[0]
		g.items = g.items[1:]
		return first
	}
	if list := items(s, v); len(list) > 0 {
		return list[0]
	}
	return &undefined{message: "No first item, sequence was empty."}
}

func lastFilter(s *state, a args) Value {
	v := a.bind("last", "seq")[0]
	if _, ok := v.(*generator); ok {
		fail("TypeError: '%s' object is not reversible", typeName(v))
	}
	if list := items(s, v); len(list) > 0 {
		return list[len(list)-1]
	}
	return &undefined{message: "No last item, sequence was empty."}
}

func itemsFilter(_ *state, a args) Value {
	switch v := a.bind("items", "value")[0].(type) {
	case *undefined:
		return &generator{name: "generator"}
	case *Dict:
		return &generator{items: (&view{v, "items"}).items(), name: "generator"}
	default:
		fail("TypeError: Can only get item pairs from a mapping.")
		return nil
	}
}

func attrFilter(_ *state, a args) Value {
	p := a.bind("attr", "obj", "name")
	name := needStr("attr", p[1])
	if v, ok := attribute(p[0], name.s); ok {
		return v
	}
	return noAttr(p[0], name.s)
}

func joinFilter(s *state, a args) Value {
	p := a.bind("join", "value", "d=''", "attribute=")
	list := items(s, p[0])
	get := attrGetter(s, p[2], nil)
	sep := toStr(s, p[1])
	var b builder
	for i, v := range list {
		if i > 0 {
			b.add(sep)
		}
		b.add(toStr(s, get(v)))
		s.charge(1)
		s.checkLen(len(b.b))
	}
	return s.made(b.str())
}
