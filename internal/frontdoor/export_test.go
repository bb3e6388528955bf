package frontdoor

import (
	"context"
	"time"
)

// Forget deletes everything that is due at a time. A front door does so every ten minutes.
func (d *FrontDoor) Forget(ctx context.Context, now time.Time) { d.durable.Forget(ctx, now) }
