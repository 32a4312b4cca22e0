package codegen

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// commRegion emits an exchange with other ranks and the row ops behind it:
// thread 0 talks to the transport, the others wait; then each thread does its
// share of the rows. When a rank cannot be reached all threads leave the step
// at the same place: each has its own word of it, read between two barriers.
func (g *cpuGen) commRegion(s *schedule, op *ir.Op, after []*ir.Op) error {
	v := op.Args[0].Value
	if op.Def.Name == "recv" {
		v = op.Results[0]
	}
	doc := commDoc(op)
	for _, o := range after {
		doc += ", " + o.Def.Name
	}
	g.begin(s, op.Def.Name, doc+".")
	s.p("if (c->own[tid].failed) return;")
	pitch := int64(round16(v.Type.Cols())) * 4
	g.traffic(s, op, v.Role(), pitch)
	w := g.w
	w.p("if (tid == 0 && %s > 0) {", rowCount(v.Role()))
	w.p("const int64_t bytes = %s * INT64_C(%d);", rowCount(v.Role()), pitch)
	switch op.Def.Name {
	case "send":
		w.p("c->failed = c->comm->send(c->comm->self, %d, %s, bytes);", op.Int("to"), g.slotPtr(v))
	case "recv":
		w.p("c->failed = c->comm->recv(c->comm->self, %d, %s, bytes);", op.Int("from"), g.slotPtr(v))
	default:
		g.need.members = max(g.need.members, op.Int("members"))
		w.p("c->failed = c->comm->exchange(c->comm->self, %s, bytes, c->parts);", g.slotPtr(v))
	}
	w.p("}")
	w.p("ifl_barrier(c->team);")
	w.p("own->failed = c->failed;")
	if op.Def.Name == "all_reduce" || op.Def.Name == "all_gather" {
		after = append([]*ir.Op{op}, after...)
	}
	if len(after) > 0 {
		w.p("if (own->failed) return;")
		if err := g.sharedRows(s, after); err != nil {
			return err
		}
	}
	g.end(s)
	return nil
}

func commDoc(op *ir.Op) string {
	switch op.Def.Name {
	case "send":
		return fmt.Sprintf("send %s to rank %d", op.Args[0].Value, op.Int("to"))
	case "recv":
		return fmt.Sprintf("recv %s from rank %d", op.Results[0], op.Int("from"))
	}
	return fmt.Sprintf("%s of %d members: %s", op.Def.Name, op.Int("members"), op.Args[0].Value)
}

// traffic counts what an exchange tells others.
func (g *cpuGen) traffic(s *schedule, op *ir.Op, role string, rowBytes int64) {
	g.need.comm = true
	for len(g.out.Traffic) < len(g.mod.Graphs) {
		g.out.Traffic = append(g.out.Traffic, manifest.Traffic{})
	}
	var t *manifest.Traffic
	for i, gr := range g.mod.Graphs {
		if gr == g.graphAt {
			t = &g.out.Traffic[i]
		}
	}
	times := 1
	if s.repeat != nil {
		times = s.repeat.Int("hi") - s.repeat.Int("lo")
	}
	bytes := rowBytes * int64(times)
	switch {
	case op.Def.Name == "send":
		t.Sends, t.SentToken = t.Sends+times, t.SentToken+bytes
	case op.Def.Name == "recv":
		t.Receives, t.ReceivedToken = t.Receives+times, t.ReceivedToken+bytes
	case role == "wanted":
		t.WantedExchanges, t.ExchangedWanted = t.WantedExchanges+times, t.ExchangedWanted+bytes
	default:
		t.Exchanges, t.ExchangedToken = t.Exchanges+times, t.ExchangedToken+bytes
	}
}

// part is the address of a member's row in the exchange that has just been.
func (r *rowCode) part(member int, x *ir.Value) string {
	return fmt.Sprintf(r.g.spell.part+" + (int64_t)%s * %d", member, r.row[x.Role()], round16(x.Type.Cols()))
}

// sum is the sum of the members' rows in the order of members, so that it is the
// same bits on every one.
func (r *rowCode) sum(op *ir.Op) string {
	x := op.Args[0].Value
	e := ""
	for m := range op.Int("members") {
		p := fmt.Sprintf(r.g.spell.load, r.part(m, x)+" + j")
		if m == 0 {
			e = p
		} else {
			e = "(" + e + " + " + p + ")"
		}
	}
	return e
}

// gather puts the members' rows side by side.
func (r *rowCode) gather(list []*ir.Op, at int) error {
	op := list[at]
	x, out := op.Args[0].Value, op.Results[0]
	dst := r.place(out, list, at)
	n := x.Type.Cols()
	for m := range op.Int("members") {
		r.g.w.p(r.g.spell.copy, fmt.Sprintf("%s + %d", dst.ptr, ops.GatherAt(op, m)), r.part(m, x), n)
	}
	r.where[out] = dst
	return nil
}
