package grammar

import (
	"errors"
	"fmt"
	"maps"
)

// workOfTool is the work that stays for each of a call's tools, whatever the schemas of
// those before it take.
const workOfTool = maxWork / 256

// arguments writes the arguments of a tool and returns their rule. Its schema is a document of its own, in which
// references are resolved. If it cannot be enforced, and the tool is not strict, the
// arguments with the names that it declares have any values.
func (w *schemaWriter) arguments(t Tool) int32 {
	var root any = newObject()
	if len(t.Parameters) > 0 && string(t.Parameters) != "null" {
		var err error
		if root, err = readJSON(t.Parameters); err != nil {
			w.err = fmt.Errorf("schema of the tool %.40q: %w", t.Name, err)
			return 0
		}
	}
	path := "/tools/" + t.Name
	if !isSchema(root) {
		w.warn(path, "expected an object, so %.40s was ignored", writeJSON(root))
		root = newObject()
	}
	before := w.mark()
	p := w.topLevel(root, path)
	if w.err == nil || t.Strict {
		return p
	}
	failed := w.err
	w.reset(before)
	return w.anyValues(t, root, failed)
}

// callable gives any values to the arguments of the tools that have no valid ones. rules are
// those of the arguments.
func (w *schemaWriter) callable(tools []Tool, rules []int32) {
	w.b.findProductive()
	for i, t := range tools {
		if w.b.rules[rules[i]].productive || w.err != nil {
			continue
		}
		none := errors.New("schema at " + shortened("/tools/"+t.Name) + ": no arguments are valid; remove one of the keywords that exclude each other")
		if t.Strict {
			w.err = none
			return
		}
		root, _ := readJSON(t.Parameters) // it was read before
		rules[i] = w.anyValues(t, root, none)
	}
}

// anyValues writes arguments with the names that a tool declares, and any values.
func (w *schemaWriter) anyValues(t Tool, root any, reason error) int32 {
	path := "/tools/" + t.Name
	w.warn(path, "only the names of the arguments are restricted, because the schema cannot be enforced (%.300s)", reason)
	return w.topLevel(w.namesOf(root), path)
}

// topLevel writes the objects of a schema as the arguments of a call, and returns their rule.
func (w *schemaWriter) topLevel(root any, path string) int32 {
	w.open(root)
	w.mode = asObject
	if w.format.ownArguments() {
		w.mode = asArguments
	}
	n := w.node(root, path)
	w.value(n)
	rule := w.rules[ruleKey{n.id, w.mode, w.exact}]
	w.mode = asJSON
	return rule
}

// namesOf returns a schema of objects with the declared names of another, and any values.
func (w *schemaWriter) namesOf(root any) any {
	out, all := newObject(), newObject()
	out.set("type", "object")
	o, _ := root.(*object)
	if o == nil {
		return out
	}
	if given, ok := o.values["properties"].(*object); ok {
		for _, name := range given.keys {
			if w.writable(name) {
				all.set(name, true)
			}
		}
	}
	var must []any
	required, _ := o.values["required"].([]any)
	for _, v := range required {
		if name, ok := v.(string); ok && all.has(name) {
			must = append(must, name)
		}
	}
	out.set("properties", all)
	out.set("required", must)
	if more, given := o.get("additionalProperties"); !w.format.ownArguments() && (len(all.keys) == 0 || given && more != false) {
		out.set("additionalProperties", true)
	}
	return out
}

// A mark is a place in the network to return to.
type mark struct {
	states, rules, work int
	named, classes      map[string]int32
	unique              bool
	warnings            int
}

func (w *schemaWriter) mark() mark {
	b := w.b
	return mark{len(b.states), len(b.rules), w.work, maps.Clone(w.named), maps.Clone(b.classes), b.unique, len(w.warnings)}
}

// reset removes what was written since a mark, and its errors. The work stays counted, but
// enough is left for a simple schema.
func (w *schemaWriter) reset(m mark) {
	b := w.b
	b.states, b.rules, b.classes, b.unique, b.err = b.states[:m.states], b.rules[:m.rules], m.classes, m.unique, nil
	w.named, w.warnings, w.work = m.named, w.warnings[:m.warnings], min(w.work, w.most-workOfTool)
	w.depth, w.proofs, w.unsure, w.scope, w.loose, w.exact, w.mode, w.err = 0, 0, false, nil, false, false, asJSON, nil
}
