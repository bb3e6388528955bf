package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/schema"
)

// Erased counts what EraseTenant ended and removed.
type Erased struct {
	// Held is the number of withdrawn calls, Permissions of removed standing permissions.
	Held, Permissions int
	// Batches is the number of deleted batches, Canceled of canceled single durable calls.
	Batches, Canceled int
	// Known says that there are records of its calls.
	Known bool
}

const (
	// eraseFor is how long EraseTenant waits for running calls, and eraseAgain its poll interval.
	eraseFor   = 10 * time.Second
	eraseAgain = 200 * time.Millisecond
)

// EraseTenant ends the calls of a deleted tenant, and removes its batches and standing
// permissions. It is idempotent. If calls still run after some seconds, their results are not
// stored yet and it returns a retryable error of KindConflict.
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
		if !sleep.For(eraseAgain, ctx.Done()) {
			return done, ctx.Err()
		}
	}
}

// endTenant ends every call that can be ended, and returns the number that still run.
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
				open++ // its caller is still waiting
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
