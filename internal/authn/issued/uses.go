package issued

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/callyard/callyard/internal/store/keytable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// noteEvery is the interval at which last uses are stored. A process that is killed loses those
	// since the last time.
	noteEvery = time.Minute
	// noteLast limits the time for storing last uses at the end.
	noteLast = 2 * time.Second
)

// noteUses stores the last uses of keys, those of a minute together, until ctx ends.
func (k *Keys) noteUses(ctx context.Context) {
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.flush(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLast)
			defer cancel()
			k.flush(last)
			return
		}
	}
}

// flush stores last uses that are later than the stored ones, and drops revoked keys.
func (k *Keys) flush(ctx context.Context) {
	k.mu.Lock()
	seen := maps.Clone(k.seen)
	maps.DeleteFunc(k.seen, func(id string, _ *entry) bool { _, _, there := k.table().Get(schema.AllTenants(), id); return !there })
	k.mu.Unlock()
	for id, e := range seen {
		tenant, minute := e.principal.Tenant, e.used.Load()
		if k.table().LastUse(tenant, id).Minute >= minute {
			continue
		}
		err := k.table().PutUse(ctx, tenant, keytable.Use{ID: id, Minute: minute})
		if errors.Is(err, bus.ErrNotFound) {
			continue // it was revoked
		}
		if err != nil {
			k.o.Log.Warn("the last use of API keys cannot be stored", "error", err)
			return // the next try follows in a minute
		}
	}
}

// lastUsed returns the time of the last use of a key, to the minute, or zero if it was never used.
func (k *Keys) lastUsed(row *keytable.Key) time.Time {
	minute := k.table().LastUse(row.Tenant, row.ID).Minute
	k.mu.RLock()
	if e := k.seen[row.ID]; e != nil {
		minute = max(minute, e.used.Load())
	}
	k.mu.RUnlock()
	at := time.Unix(minute*60, 0).UTC()
	if at.Before(row.Created.Time().Truncate(time.Minute)) { // a revoked key had the same name
		return time.Time{}
	}
	return at
}
