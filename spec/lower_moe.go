package spec

import "strings"

// gateTransposed reports whether a weight is the router's matrix with inputs as rows.
func (m *Model) gateTransposed(std string, shape []int) bool {
	return m.Net.MoEGateLayout == "by_shape" && strings.HasSuffix(std, ".moe.gate.weight") && shape[1] != m.Hyper.Hidden
}

// otherSet reports whether a tensor belongs to an expert of a set that no token of a text
// is routed to.
func (m *Model) otherSet(r nameRule, expert int) bool {
	return m.Net.MoESets > 1 && expert >= m.Net.ExpertCount && strings.Contains(r.standard.String(), ".moe.expert.{j}.")
}
