// Package ops defines the table of all ops: their arguments, their results and their
// semantics over real numbers. docs/ops.md is generated from it.
package ops

import "github.com/iflowc/iflowc/ir"

//go:generate go run ../../tools/gen/opdoc -o ../../docs/ops.md

// Table lists all ops.
var Table = ir.OpSet{
	ir.Repeat, ir.Fuse, ir.Par,

	Embed, Rows, RopeTable, Rope, Sinusoid, PositionScale,
	Matmul, Lora,
	Add, Sub, Mul, Div,
	Scale, Shift, Softcap, Clamp,
	Silu, Gelu, GeluTanh, QuickGelu, Relu, Relu2, Sigmoid, Tanh, Elu, Softplus, Identity,
	RMSNorm, LayerNorm, L2Norm, Reduce,
	Split, Concat, JoinHeads, HeadCols, Fill, Unfold, StreamWeights, MixStreams,
	KVAppend, SelectRows, Attention, MergeAttention,
	LinearRecurrence, SelectiveScan, RGLRU, ShortConv, TokenShift, PoolRows,
	Route, Experts,
	QuantizeAct,
	AllReduce, AllGather, Send, Recv, RankCols,
	Argmax, Softmax,
}
