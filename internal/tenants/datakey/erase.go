package datakey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Erase marks a tenant as erased, which notifies every process that watches the table
// ([WatchErased]), and destroys its data key, if it has one, so that nobody can open data sealed
// with it. It may be repeated, and completes an interrupted earlier call. A tenant that is used
// again gets a new key. Erase needs none of the operator's keys.
func Erase(ctx context.Context, c *bus.Conn, tenant schema.TenantID) error {
	t, err := openTable(ctx, c)
	if err == nil {
		err = t.erase(ctx, tenant.OrDefault())
	}
	if err != nil {
		return fmt.Errorf("destroying the data key of tenant %q: %w", tenant, err)
	}
	return nil
}

// Known reports whether the tenant has or had a data key, or was erased before.
func Known(ctx context.Context, c *bus.Conn, tenant schema.TenantID) (bool, error) {
	t, err := openTable(ctx, c)
	if err != nil {
		return false, err
	}
	r, err := t.last(ctx, tenant.OrDefault())
	return r != nil, err
}

// Destroy is [Erase] for a process that has the ring, which drops the key at once.
func (r *Ring) Destroy(ctx context.Context, tenant schema.TenantID) error {
	tenant = tenant.OrDefault()
	if err := r.table.erase(ctx, tenant); err != nil {
		return fmt.Errorf("destroying the data key of tenant %q: %w", tenant, err)
	}
	r.drop(tenant)
	return nil
}

// erase writes the marker and makes NATS overwrite earlier rows. Each call writes a marker, so that
// everything the tenant got since the last one ends.
func (t *table) erase(ctx context.Context, tenant schema.TenantID) error {
	for {
		was, err := t.last(ctx, tenant)
		if err != nil {
			return err
		}
		mark, after := &row{Tenant: tenant, Destroyed: time.Now().UTC().Truncate(time.Second)}, uint64(0)
		if was != nil {
			after = was.sequence
		}
		if err = t.put(ctx, mark, after); errors.Is(err, bus.ErrConflict) {
			continue // its key was created or wrapped again in the meantime
		}
		if err == nil {
			err = t.eraseBefore(ctx, tenant, mark.sequence)
		}
		return err
	}
}

// WatchErased calls f with each erased tenant and the time, first for earlier erasures and then for
// each new one. It calls f on one goroutine until the watch is closed. A tenant that was erased
// earlier and has a data key again may be left out. ctx limits the opening.
func WatchErased(ctx context.Context, c *bus.Conn, f func(tenant schema.TenantID, at time.Time)) (*bus.StreamWatch, error) {
	t, err := openTable(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.watch(ctx, func(r *row) {
		if r.destroyed() {
			f(r.Tenant.OrDefault(), r.Destroyed)
		}
	})
}
