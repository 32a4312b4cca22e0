package syntax

import "strings"

// String returns the expression as text, in one line.
func (e *Expr) String() string {
	switch e.Kind {
	case ListExpr:
		return "[" + join(e.Args) + "]"
	case CompExpr:
		text := "[" + e.Args[0].String() + " for " + e.Text + " in " + e.Args[1].String()
		if len(e.Args) > 2 {
			text += " if " + e.Args[2].String()
		}
		return text + "]"
	case UnaryExpr:
		if e.Text == "not" {
			return "not " + e.operand(0)
		}
		return e.Text + e.operand(0)
	case BinaryExpr:
		return e.operand(0) + " " + e.Text + " " + e.operand(1)
	case CondExpr:
		return e.operand(0) + " if " + e.operand(1) + " else " + e.operand(2)
	case CallExpr:
		return e.Text + "(" + e.arguments() + ")" + e.As.String()
	case IndexExpr:
		return e.operand(0) + "[" + join(e.Args[1:]) + "]"
	}
	return e.Text
}

// operand returns an operand, in parentheses if it has operators.
func (e *Expr) operand(i int) string {
	x := e.Args[i]
	if x.Kind == UnaryExpr || x.Kind == BinaryExpr || x.Kind == CondExpr {
		return "(" + x.String() + ")"
	}
	return x.String()
}

func (e *Expr) arguments() string {
	parts := make([]string, 0, len(e.Args)+len(e.Named))
	for _, a := range e.Args {
		parts = append(parts, a.String())
	}
	for _, a := range e.Named {
		if a.Val == nil {
			parts = append(parts, a.Name)
			continue
		}
		parts = append(parts, a.Name+" = "+a.Val.String())
	}
	return strings.Join(parts, ", ")
}

func join(list []*Expr) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = e.String()
	}
	return strings.Join(parts, ", ")
}

// String returns " as NAME", or "" for nil.
func (p *Path) String() string {
	switch {
	case p == nil:
		return ""
	case p.Index != nil:
		return " as " + p.Name + "[" + p.Index.String() + "]"
	}
	return " as " + p.Name
}
