package cpu

import (
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// exchange emits an exchange with other ranks and the row ops after it. Thread 0 calls
// the transport while the others wait; then each thread computes its rows. If a rank
// cannot be reached, all threads leave the step at the same place, because each copies
// the failure flag between two barriers.
func (e *emitter) exchange(r *layout.Region, x *layout.Exchange) error {
	e.traffic(r, x)
	w, rows := e.w, rowCount(r.Role)
	w.P("if (tid == 0 && %s > 0) {", rows)
	w.P("const int64_t bytes = %s * INT64_C(%d);", rows, x.Place.Pitch*4)
	at := e.names.Rows(x.Place)
	switch x.Op {
	case "send", "recv":
		w.P("c->failed = c->comm->%s(c->comm->self, %d, %s, bytes);", x.Op, x.Peer, at)
	default:
		w.P("c->failed = c->comm->exchange(c->comm->self, %s, bytes, c->parts);", at)
	}
	w.P("}")
	w.P("ifl_barrier(c->pool);")
	w.P("own->failed = c->failed;")
	if x.Rows == nil {
		return nil
	}
	w.P("if (own->failed) return;")
	return e.rows(r, x.Rows)
}

// traffic counts the bytes that an exchange sends to other ranks.
func (e *emitter) traffic(r *layout.Region, x *layout.Exchange) {
	e.need.ranks = max(e.need.ranks, x.TPSize, 1)
	if e.out.Traffic == nil {
		e.out.Traffic = make([]manifest.Traffic, len(e.layout.Graphs))
	}
	t, times := &e.out.Traffic[r.Graph.Entry], r.Loop.Layers()
	bytes := int64(x.Place.Pitch) * 4 * int64(times)
	switch {
	case x.Op == "send":
		t.Sends, t.SentToken = t.Sends+times, t.SentToken+bytes
	case x.Op == "recv":
		t.Receives, t.ReceivedToken = t.Receives+times, t.ReceivedToken+bytes
	case r.Role == "out_rows":
		t.OutRowExchanges, t.ExchangedOutRow = t.OutRowExchanges+times, t.ExchangedOutRow+bytes
	default:
		t.Exchanges, t.ExchangedToken = t.Exchanges+times, t.ExchangedToken+bytes
	}
}
