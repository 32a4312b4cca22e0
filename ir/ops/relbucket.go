package ops

import "math"

// RelBucket returns the row of a table of relative biases for a key at the given
// distance, its position less the query's (T5: Raffel et al. 2020, §2.1). Half
// the buckets of a direction are single distances; the others grow with the
// logarithm, up to limit and beyond. bidirectional gives later positions the
// upper half of the buckets; else they share the bucket of distance 0. The
// logarithms are those of transformers, in float32.
func RelBucket(distance, buckets, limit int, bidirectional bool) int {
	first := 0
	if bidirectional {
		buckets /= 2
		if distance > 0 {
			first = buckets
		} else {
			distance = -distance
		}
	} else {
		distance = max(-distance, 0)
	}
	exact := buckets / 2
	if distance < exact {
		return first + distance
	}
	ratio := float32(math.Log(float64(float32(distance)/float32(exact)))) / float32(math.Log(float64(limit)/float64(exact)))
	return first + min(exact+int(ratio*float32(buckets-exact)), buckets-1)
}
