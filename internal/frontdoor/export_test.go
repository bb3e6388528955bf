package frontdoor

import (
	"context"
	"time"
)

// Forget deletes what is due at a time; a front door does so every ten minutes.
func (d *FrontDoor) Forget(ctx context.Context, now time.Time) { d.durable.Forget(ctx, now) }
