// Package interp is the reference interpreter of the IR. It runs any module in float64,
// as simply as possible, and defines the semantics that passes and generated code are
// tested against. It is too slow to serve a model.
//
// It rounds only where the graph requires it: weights and state fields to their declared
// element type, activations in quantize_act, and rotary angles as rope_table describes.
// All other arithmetic is float64.
package interp
