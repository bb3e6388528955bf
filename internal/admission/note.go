package admission

import (
	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/pkg/schema"
)

// recordOf is what the execution log says of a call; place, where it is not nil,
// has what is known beside.
func recordOf(call *schema.Call, place *record.Record) record.Record {
	var rec record.Record
	if place != nil {
		rec = *place
	}
	if rec.ID == "" {
		rec.ID = call.ID
	}
	rec.Principal, rec.Owner, rec.Server, rec.Tool, rec.Method = call.Principal.Name, call.Principal.Owner, call.Server, call.Tool, call.Method
	rec.Durable = call.Durable
	return rec
}

// noteBegin notes that a call runs. The argument bytes are not changed any more
// once they are here, so their digest may be made later.
func (g *Gate) noteBegin(call *schema.Call, place *record.Record) *record.Call {
	if g.records == nil {
		return nil
	}
	rec := recordOf(call, place)
	return g.records.BeginWith(&rec, call.Arguments, true)
}

// noteRefused notes a call that never ran. What callers made up is not kept.
func (g *Gate) noteRefused(call *schema.Call, err error) {
	if g.records == nil {
		return
	}
	rec := recordOf(call, nil)
	if schema.KindOf(err) == schema.KindNotFound {
		rec.Server, rec.Tool = "", ""
	}
	g.records.Begin(&rec).End(record.Outcome{Err: err})
}

// noteHeld records a call that waits for an approval.
func (g *Gate) noteHeld(call *schema.Call, held *approval.Held) {
	if g.records == nil {
		return
	}
	rec := recordOf(call, nil)
	rec.State, rec.Approval = schema.StateHeld, held.Approval.ID
	g.records.Add(&rec)
}
