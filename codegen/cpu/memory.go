package cpu

// ActivationBytes is what the values of a step and its results take, in bytes,
// for at most so many tokens, output rows and sequences. The scratch of kernels
// and of threads comes on top; it does not grow with the model's width times
// the tokens.
func (m *Model) ActivationBytes(tokens, outRows, seqs int) int64 {
	rows := map[string]int{"tokens": tokens, "out_rows": outRows, "sequences": seqs}
	n := int64(0)
	for _, b := range m.buffers {
		n += int64(b.Cols) * int64(rows[b.Role]) * 4
	}
	results := int64(0)
	for _, g := range m.Manifest.Graphs {
		one := int64(0)
		for _, o := range g.Outputs {
			one += int64(o.Cols) * int64(rows[o.Rows]) * 4
		}
		results = max(results, one)
	}
	return n + results
}
