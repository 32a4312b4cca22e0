package ir

import (
	"fmt"
	"slices"
)

// A returns an Arg that uses a value without an index.
func A(v *Value) Arg { return Arg{Value: v} }

// NewOp returns an op on values of a graph, with inferred result types. It needs one
// name per result. Attributes may be in any order. It returns an error if arguments
// or attributes do not match the definition. Use NewRegion for ops with a body.
func NewOp(def *OpDef, args []Arg, attrs Attrs, names ...string) (*Op, error) {
	return NewRegion(def, args, attrs, nil, names...)
}

// NewOpLike is NewOp for results that all have one name, which the caller makes unique.
func NewOpLike(def *OpDef, args []Arg, attrs Attrs, name string) (*Op, error) {
	o := &Op{Def: def, Args: args, Attrs: attrs.normalize(def)}
	types, err := o.infer()
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		o.Results = append(o.Results, &Value{Name: name, Kind: Result, Type: t, Op: o})
	}
	return o, nil
}

// NewRegion is NewOp for repeat, fuse and par, with the given body.
func NewRegion(def *OpDef, args []Arg, attrs Attrs, body *Block, names ...string) (*Op, error) {
	o := &Op{Def: def, Args: args, Attrs: attrs.normalize(def), Body: body}
	types, err := o.infer()
	if err != nil {
		return nil, err
	}
	if len(types) != len(names) {
		return nil, fmt.Errorf("op %s yields %d values but %d names are given", def.Name, len(types), len(names))
	}
	for i, n := range names {
		o.Results = append(o.Results, &Value{Name: n, Kind: Result, Type: types[i], Op: o})
	}
	return o, nil
}

// infer checks arguments and attributes against the definition and returns the
// result types.
func (o *Op) infer() ([]Type, error) {
	if err := o.checkArgs(); err != nil {
		return nil, fmt.Errorf("op %s: %w", o.Def.Name, err)
	}
	if err := o.checkAttrs(); err != nil {
		return nil, fmt.Errorf("op %s: %w", o.Def.Name, err)
	}
	if o.Def.Is(HasBody) != (o.Body != nil) {
		return nil, fmt.Errorf("op %s: missing or unexpected body", o.Def.Name)
	}
	types, err := o.Def.Infer(o)
	if err != nil {
		return nil, fmt.Errorf("op %s: %w", o.Def.Name, err)
	}
	for i := range types { // Infer may return an argument's type
		types[i].Shape = slices.Clone(types[i].Shape)
	}
	return types, nil
}

// Reinfer infers the result types again after arguments or attributes changed.
func (o *Op) Reinfer() error {
	types, err := o.infer()
	if err != nil {
		return err
	}
	if len(types) != len(o.Results) {
		return fmt.Errorf("op %s: yields %d values, has %d results", o.Def.Name, len(types), len(o.Results))
	}
	for i, t := range types {
		o.Results[i].Type = t
	}
	return nil
}
