package ops

import "math"

// RelBucket returns the row of a table of relative position biases for a key at the
// given distance, its position minus the query's (T5: Raffel et al. 2020, §2.1). Half of
// the buckets of a direction are single distances. The others grow logarithmically up to
// limit; the last one also covers larger distances. With bidirectional, later positions
// use the upper half of the buckets; otherwise they share the bucket of distance 0. The
// logarithms are computed in float32, as in transformers.
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
