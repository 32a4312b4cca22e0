package main

import (
	"fmt"
	"slices"
)

// checkEncoder compares the outputs of an encoder that the folder has. A classifier
// gets no token types.
func checkEncoder(m model, want *expected) error {
	ids, types := want.Inputs.Prompt.IDs, want.Inputs.Prompt.Types
	for _, o := range []struct {
		array, output string
		types, rows   []int
	}{
		{"prompt.last_hidden", "hidden", types, []int{0}},
		{"prompt.pooled", "pooled", types, []int{0}},
		{"mlm.logits", "logits", types, want.Inputs.MLM.Positions},
		{"classes.logits", "classes", nil, []int{0}},
	} {
		array, ok := want.Arrays[o.array]
		if !ok {
			continue
		}
		values, err := floats(array.Values)
		if err != nil {
			return err
		}
		got, err := m.encode(o.output, ids, o.types, o.rows)
		if err == nil {
			err = near(slices.Concat(got...), values)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.output, err)
		}
	}
	return nil
}
