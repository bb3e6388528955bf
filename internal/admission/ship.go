package admission

import (
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/record"
)

// Ship is Run for one of many calls that nobody waits for: it makes one attempt and
// has no goroutine of its own. It takes the calls only that no quota can hold back,
// and returns false, having done nothing, for others. The parcel's Ended is called
// when the attempt is counted.
func (g *Gate) Ship(p *dispatch.Parcel, place *record.Record) bool {
	call := p.Call
	if g.quota.Limits(&call.Principal, call.Server) {
		return false
	}
	g.flying.Add(1)
	began := time.Now()
	g.metrics.CallStarted()
	note := g.noteBegin(call, place)
	ended := p.Ended
	p.Ended = func(p *dispatch.Parcel, e dispatch.End) {
		note.End(record.Outcome{Result: e.Result, Err: e.Err})
		g.count(call, e.Result, e.Err, began)
		ended(p, e)
		g.left()
	}
	g.router.Place(p)
	return true
}
