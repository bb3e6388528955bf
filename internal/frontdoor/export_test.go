package frontdoor

import (
	"context"
	"time"
)

// Forget deletes everything that is due at a time. A front door does so every ten minutes.
func (d *FrontDoor) Forget(ctx context.Context, now time.Time) { d.durable.Forget(ctx, now) }

// DrainUntil makes [FrontDoor.Stop] wait for the channel instead of for a delay, which asked receives.
func (d *FrontDoor) DrainUntil(over <-chan time.Time) (asked <-chan time.Duration) {
	delays := make(chan time.Duration, 1)
	d.after = func(delay time.Duration) <-chan time.Time {
		delays <- delay
		return over
	}
	return delays
}

// Doubts returns the probable mistakes in the policy that the log of a front door names.
func (d *FrontDoor) Doubts() []string { return d.doubts(d.o.Policy.Current()) }
