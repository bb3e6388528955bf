package admission

import (
	"context"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// answer has an admitted call answered: from the cache where its result may be
// kept, else by its tool.
func (g *Gate) answer(ctx context.Context, call *schema.Call, keep *risk.Cache) (*schema.Result, error) {
	// Progress is of one run and for one caller, and what may not be repeated has a
	// result of its own each time.
	if keep == nil || g.cache == nil || !call.Safe || call.Progress != nil || call.Hear != nil {
		return g.serve(ctx, call)
	}
	return g.cache.Do(ctx, call, *keep, func(ctx context.Context) (*schema.Result, error) { return g.serve(ctx, call) })
}

// serve has a call run while its server has room for it.
func (g *Gate) serve(ctx context.Context, call *schema.Call) (*schema.Result, error) {
	room, err := g.quota.Serve(ctx, call.Server)
	if err != nil {
		return nil, schema.AsError(err).WithCall(call.ID)
	}
	defer room.Leave()
	return g.router.Do(ctx, call)
}

// left notes that a call is over, and tells who drains that it was the last.
func (g *Gate) left() {
	if g.flying.Add(-1) == 0 && g.closing.Load() {
		select {
		case g.drained <- struct{}{}:
		default:
		}
	}
}
