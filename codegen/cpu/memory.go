package cpu

// ActivationBytes returns the memory in bytes of the values and results of a step with
// the given maximum numbers of tokens, output rows and sequences. It does not include
// the scratch of kernels and threads, which does not grow with tokens × model width.
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
