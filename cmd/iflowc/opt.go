//go:build unix

package main

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/spec"
)

// optEnv returns the context of passes without a model spec.
func optEnv(quant string) (*passes.Env, error) {
	cat, err := compiler.Kernels()
	if err != nil {
		return nil, err
	}
	env := &passes.Env{Ops: ops.Table, Kernels: cat, Notice: notice}
	if quant != "" {
		t, err := spec.ParseType(quant)
		if err != nil {
			return nil, usageError{fmt.Errorf("--quant: %w", err)}
		}
		env.Types.Default = t
	}
	return env, nil
}

// lineDiff shows the lines removed and added between two texts, by their
// longest common subsequence.
func lineDiff(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	// lcs[i][j]: length of the longest common subsequence of as[i:], bs[j:].
	lcs := make([][]int, len(as)+1)
	for i := range lcs {
		lcs[i] = make([]int, len(bs)+1)
	}
	for i := len(as) - 1; i >= 0; i-- {
		for j := len(bs) - 1; j >= 0; j-- {
			if as[i] == bs[j] {
				lcs[i][j] = lcs[i+1][j+1] + 1
			} else {
				lcs[i][j] = max(lcs[i+1][j], lcs[i][j+1])
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(as) || j < len(bs); {
		switch {
		case i < len(as) && j < len(bs) && as[i] == bs[j]:
			i, j = i+1, j+1
		case j < len(bs) && (i == len(as) || lcs[i][j+1] > lcs[i+1][j]):
			fmt.Fprintf(&out, "+ %s\n", bs[j])
			j++
		default:
			fmt.Fprintf(&out, "- %s\n", as[i])
			i++
		}
	}
	return out.String()
}
