package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/schema"
)

// Erased says what was ended and removed of a tenant.
type Erased struct {
	// Held calls were withdrawn, and standing Permissions removed.
	Held, Permissions int
	// Batches were deleted; Canceled single durable calls were taken back.
	Batches, Canceled int
	// Known says that there are records of its calls.
	Known bool
}

const (
	// eraseFor is how long EraseTenant waits for calls that run, and eraseAgain is between two
	// looks at them.
	eraseFor   = 10 * time.Second
	eraseAgain = 200 * time.Millisecond
)

// EraseTenant ends the calls of a tenant that is deleted, and removes its batches and standing
// permissions. It may be repeated. The error is of KindConflict, and retryable, where calls
// still run after some seconds: they have not stored their results.
func (c *Calls) EraseTenant(ctx context.Context, tenant schema.TenantID) (Erased, error) {
	var done Erased
	if c.o.Records != nil {
		any, _, err := c.o.Records.List(ctx, schema.OnlyTenant(tenant), records.Filter{}, "", 1)
		if err != nil {
			return done, err
		}
		done.Known = len(any) > 0
	}
	for until := time.Now().Add(eraseFor); ; {
		open, err := endTenant(ctx, &c.o, tenant, &done)
		if err != nil || open == 0 {
			return done, err
		}
		if time.Now().After(until) {
			return done, schema.Errorf(schema.KindConflict, "%d calls or batches of tenant %q still run, so its data key is not destroyed yet. Erase it again when they have ended.", open, tenant).RetryableAfter(eraseFor)
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(eraseAgain):
		}
	}
}

// endTenant ends what can be ended, and returns how much runs on.
func endTenant(ctx context.Context, o *Options, tenant schema.TenantID, done *Erased) (open int, err error) {
	if o.Desk != nil {
		ended, running, permissions, err := o.Desk.EndTenant(ctx, tenant)
		done.Held, done.Permissions = done.Held+ended, done.Permissions+permissions
		if open += running; err != nil {
			return open, err
		}
	}
	if o.Durable != nil {
		batches, deleted, err := o.Durable.Batches.EndTenant(ctx, tenant)
		done.Batches += deleted
		if open += batches; err != nil {
			return open, err
		}
	}
	if o.Records == nil {
		return open, nil
	}
	page, _, err := o.Records.List(ctx, schema.OnlyTenant(tenant), records.Filter{States: []schema.State{schema.StateQueued, schema.StateRunning}}, "", 1000)
	if err != nil {
		return open, err
	}
	for i := range page {
		r := &page[i]
		if r.Known == "" || r.Batch != "" || o.Durable == nil {
			if r.Batch == "" && r.Approval == "" {
				open++ // its caller still waits
			}
			continue
		}
		who := schema.Principal{Name: r.Principal, Owner: r.Owner, Tenant: r.Tenant}
		s, err := o.Durable.Calls.Cancel(ctx, r.Known, who)
		switch {
		case schema.KindOf(err) == schema.KindNotFound:
		case err != nil:
			return open, err
		case !s.Ended():
			open++
		default:
			done.Canceled++
		}
	}
	return open, nil
}
