// Package interp runs any module slowly and obviously, in float64. It says
// what a graph means: passes and generated code are checked against it. It is
// never a way to run a model.
//
// What is rounded is rounded because the graph says so: weights to their
// declared element type, state fields to theirs, activations by quantize_act,
// rotary angles as rope_table describes. Everything else is real arithmetic,
// as near as float64 comes.
package interp
