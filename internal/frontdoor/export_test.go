package frontdoor

import (
	"context"
	"time"
)

// Forget deletes everything that is due at a time. A front door does so every ten minutes.
func (d *FrontDoor) Forget(ctx context.Context, now time.Time) { d.durable.Forget(ctx, now) }

// Doubts returns the probable mistakes in the policy that the log of a front door names.
func (d *FrontDoor) Doubts() []string { return d.doubts(d.o.Policy.Current()) }
