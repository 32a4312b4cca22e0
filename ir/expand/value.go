package expand

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// What expressions compute is an int, float64, bool, string, nil, a list ([]any) of them, a
// value or state of the graph (*ir.Value), or a weight (*weightVar).

// typeName returns what errors call the type of a value.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case int:
		return "an integer"
	case float64:
		return "a number"
	case bool:
		return "a truth value"
	case string:
		return "a word"
	case []any:
		return "a list"
	case *weightVar:
		return "a weight"
	case *sourceValue:
		return "a tensor"
	case *ir.Value:
		if v.Kind == ir.State {
			return "a state"
		}
		return "a value"
	}
	return fmt.Sprintf("%T", v)
}

// show returns a value as text in errors: of a list the first elements, and two levels.
func show(v any) string { return shown(v, 2) }

func shown(v any, levels int) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		if levels == 0 && len(v) > 0 {
			return "[…]"
		}
		text := "["
		for i, x := range v {
			if i == 8 {
				return text + ", …]"
			}
			if i > 0 {
				text += ", "
			}
			text += shown(x, levels-1)
		}
		return text + "]"
	case *weightVar:
		return v.decl.Name
	case *sourceValue:
		if len(v.tensors) == 0 {
			return "a tensor that is not stored"
		}
		return fmt.Sprintf("tensor %q of shape %v", v.tensors[0].File, v.tensors[0].Shape)
	}
	return fmt.Sprint(v)
}

// truth returns whether a value counts as true in a condition.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *weightVar:
		return v.found != nil
	case *sourceValue:
		return len(v.missing) == 0
	}
	return true
}

// float returns a number as a float64.
func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// plain returns a value of a configuration as expressions have it: whole numbers as int.
func (f *frame) plain(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v)
		}
	case float32:
		return f.plain(float64(v))
	case []any:
		return plainList(f, v)
	case []string:
		return plainList(f, v)
	case []int:
		return plainList(f, v)
	case []float64:
		return plainList(f, v)
	}
	return v
}

func plainList[T any](f *frame, list []T) []any {
	f.spend(len(list))
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = f.plain(x)
	}
	return out
}

// convert makes a value one of a parameter's type.
func (f *frame) convert(p *param, v any) any {
	v = f.plain(v)
	if v == nil { // a parameter whose default is None may be absent
		if p.Default == nil || p.Default.Text != "None" {
			f.fail("%s is None, want %s", p.Name, p.typeText())
		}
		return nil
	}
	list, isList := v.([]any)
	switch {
	case p.Type.List || p.Layered && isList:
		if !isList {
			f.fail("%s is %s, want a list", p.Name, show(v))
		}
		out := make([]any, len(list))
		for i, x := range list {
			out[i] = f.element(p, x)
		}
		return out
	}
	return f.element(p, v)
}

// typeText returns what a parameter must be.
func (p *param) typeText() string {
	text := p.kind
	if p.words != nil {
		text = "one of " + strings.Join(p.words, ", ")
	}
	if p.Type.List {
		return "a list of " + text
	}
	return text
}

func (f *frame) element(p *param, v any) any {
	ok := false
	switch p.kind {
	case "int":
		_, ok = v.(int)
	case "float":
		if n, isNumber := float(v); isNumber {
			return n
		}
	case "bool":
		_, ok = v.(bool)
	default:
		var word string
		if word, ok = v.(string); ok && p.words != nil && word != "" && !slices.Contains(p.words, word) {
			f.fail("%s is %s, want %s%s", p.Name, show(v), p.typeText(), spelling.DidYouMean(word, p.words))
		}
	}
	if !ok {
		f.fail("%s is %s, want %s", p.Name, show(v), p.typeText())
	}
	return v
}
