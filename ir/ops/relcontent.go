package ops

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
)

// RelIndex returns the row of a table of relative positions for a key at the given
// distance, its position minus the query's. With spacing buckets it is RelBucket. Otherwise it
// counts from the middle of the table, with positions behind the query in the upper half,
// up to the table's ends. Spacing linear has a row for each distance. Spacing log has one
// for each distance up to a quarter of the table and then fewer, logarithmically up to
// limit (DeBERTa: He et al. 2021, §A.3, in the float32 arithmetic of transformers).
func RelIndex(o *ir.Op, distance int) int {
	buckets, limit := o.Int("rel_buckets"), o.Int("rel_max")
	behind, half := -distance, buckets/2
	switch o.Word("rel_spacing") {
	case "buckets":
		return RelBucket(distance, buckets, limit, o.Bool("rel_bidirectional"))
	case "log":
		if middle := half / 2; behind > middle || behind < -middle {
			far := math.Abs(float64(behind))
			ratio := float32(math.Log(float64(float32(far)/float32(middle)))) / float32(math.Log(float64(float32(float64(limit-1)/float64(middle)))))
			at := int(math.Ceil(float64(ratio*float32(middle-1)))) + middle
			if behind < 0 {
				at = -at
			}
			behind = at
		}
	}
	return min(max(behind+half, 0), buckets-1)
}

// contentBias checks the tables of disentangled attention.
func contentBias(o *ir.Op, s AttentionShape) error {
	buckets, width := o.Int("rel_buckets"), s.Heads*s.HeadDim
	if o.Bool("causal") || o.Bool("cross") || s.Heads != s.KVHeads || buckets < 2 || o.Word("rel_spacing") == "log" && (buckets < 8 || o.Int("rel_max")-1 <= buckets/4) {
		return fmt.Errorf("rel_keys and rel_queries require as many KV heads as heads, rel_buckets, and neither causal nor cross; rel_spacing=log requires 8 buckets and rel_max above a quarter of them")
	}
	for at, shape := range map[int][2]int{s.RelKeys: {width, buckets}, s.RelQueries: {buckets, width}} {
		if t := o.Args[max(at, 0)].Type; at > 0 && (!t.IsMatrix() || t.Shape[0].N != shape[0] || t.Cols() != shape[1]) {
			return fmt.Errorf("%s is %s, expected [%d, %d]", o.Args[at], t, shape[0], shape[1])
		}
	}
	return nil
}
