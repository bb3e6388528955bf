package journal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Results returns up to max results of a journal of the tenant after the cursor, in stored order, and the
// cursor after the last of them. An empty page means that there are no more now. A call that was
// unknown, or that a person settled, has more than one record; the last one counts. Bodies in objects
// are not loaded; see [Store.ResultBody]. In a lane, results of other tenants are omitted.
func (s *Store) Results(ctx context.Context, tenant schema.TenantID, id schema.BatchID, after Cursor, max int) ([]ResultRecord, Cursor, error) {
	of := schema.OnlyTenant(tenant)
	m, err := manifestOf(ctx, s, of, id)
	if err != nil {
		return nil, after, err
	}
	for of = m.withinOf(of); ; {
		page, err := s.logs.readToEnd(ctx, id, LogResults, after.Sequence, aheadMessages, aheadBytes)
		if err != nil {
			return nil, after, unavailable(err)
		}
		found, next, err := openedResults(ctx, s.ring, of, id, page, after, max)
		if err != nil || len(found) > 0 || len(page) == 0 {
			return found, next, err
		}
		after = next // skip messages that have no results of these tenants
	}
}

// resultsOf decodes the results of a page of messages, which starts with the message of the cursor.
func resultsOf(of schema.Tenants, id schema.BatchID, page []bus.Message, after Cursor, max int) ([]ResultRecord, Cursor, error) {
	var found []ResultRecord
	if len(page) > 0 {
		h, _, err := ReadHead(page[0].Data, LogResults)
		if err != nil {
			return nil, after, damaged(id, err)
		}
		found = make([]ResultRecord, 0, min(max, h.Count*len(page)))
	}
	for _, m := range page {
		if len(found) >= max {
			break
		}
		position := uint32(0)
		skip := uint32(0)
		if m.Sequence == after.Sequence {
			skip = after.Position
		}
		h, err := ReadResults(m.Data, func(r *ResultRecord) {
			if position >= skip && len(found) < max {
				if of.Include(r.Tenant) {
					r.Sequence, r.Position = m.Sequence, position
					found = append(found, *r)
				}
				position++
			} else if position < skip {
				position++
			}
		})
		if err != nil {
			return nil, after, damaged(id, err)
		}
		after = Cursor{m.Sequence, position}
		if int(position) >= h.Count {
			after = Cursor{Sequence: m.Sequence + 1}
		}
	}
	return found, after, nil
}

// pageSize is the maximum number of results that Follow passes per call of f.
const pageSize = 1000

// Follow calls f with the results of a journal of the tenant after the cursor, and then with new ones as
// they are stored. It returns nil when the journal has ended and f has received all results, the error
// of f if f returns one, or the error of ctx. f runs on the caller's goroutine and may block.
func (s *Store) Follow(ctx context.Context, tenant schema.TenantID, id schema.BatchID, after Cursor, f func([]ResultRecord, Cursor) error) error {
	of := schema.OnlyTenant(tenant)
	m, err := manifestOf(ctx, s, of, id)
	if err != nil {
		return err
	}
	return follow(ctx, s, m.withinOf(of), id, after, f)
}

// follow is Follow for the results of these tenants, without checking access to the journal.
func follow(ctx context.Context, s *Store, of schema.Tenants, id schema.BatchID, after Cursor, f func([]ResultRecord, Cursor) error) error {
	subscription := s.recent.join(id, LogResults)
	defer subscription.leave()
	unlisten, err := s.logs.listen(id, LogResults, subscription.appended)
	if err != nil {
		return unavailable(err)
	}
	defer unlisten()
	defer s.WatchOne(schema.AllTenants(), id, func(m *Manifest) {
		if m.State == Ended {
			subscription.signal()
		}
	})()
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for warm := false; ; {
		page, missed := subscription.page(after.Sequence)
		if len(page) > 0 {
			warm = true
		} else if elsewhere := subscription.elsewhere.Swap(false); warm && !missed && !elsewhere && !s.view.hasEnded(id) {
			warm = false // its writer is in this process and sends notifications
		} else if page, err = s.logs.Read(ctx, id, LogResults, after.Sequence, aheadMessages, aheadBytes); err != nil {
			return unavailable(err)
		}
		found, next, err := openedResults(ctx, s.ring, of, id, page, after, pageSize)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			after = next
			if err := f(found, after); err != nil {
				return err
			}
			continue
		}
		after = next // skip messages without results
		if len(page) > 0 {
			continue
		}
		over, err := allRead(ctx, s, id, after)
		if err != nil || over {
			return err
		}
		timer.Reset(lookAgain)
		select {
		case <-subscription.wake:
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hasEnded reports whether the journal has ended, according to this process's view.
func (v *view) hasEnded(id schema.BatchID) bool {
	m, _, ok := v.get(id)
	return !ok || m.State == Ended
}

// allRead reports whether a journal has ended and no result follows the cursor.
func allRead(ctx context.Context, s *Store, id schema.BatchID, after Cursor) (bool, error) {
	if !s.view.hasEnded(id) {
		return false, nil
	}
	m, _, err := s.read(ctx, schema.AllTenants(), id, bus.Leader)
	if err != nil {
		return false, err
	}
	if m.State != Ended {
		return false, nil
	}
	last, err := s.logs.Last(ctx, id, LogResults)
	if isNotFound(err) {
		return true, nil
	}
	return err == nil && after.Sequence > last.Sequence, unavailable(err)
}

// FindResult reads the effective result of one call of the tenant, or returns [schema.KindNotFound]. It
// reads the log from the cursor on until the result is certain; a million results take a second or
// more.
func (s *Store) FindResult(ctx context.Context, tenant schema.TenantID, id schema.BatchID, index uint64, after Cursor) (*ResultRecord, error) {
	m, err := manifestOf(ctx, s, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	found, err := s.logs.findResult(ctx, id, index, after)
	if err == nil {
		found, err = openedResult(ctx, s.ring, id, found)
	}
	if err != nil {
		return nil, err
	}
	if found != nil && m.Kind == Lane {
		if found, err = ofTenant(ctx, s, tenant, id, found); err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, schema.Errorf(schema.KindNotFound, "Call %d of journal %s has no result, or it has been deleted.", index, id)
	}
	return found, nil
}

// ofTenant returns the result of a lane, or nil if it belongs to a call of another tenant. For a result
// that was stored before results had a tenant, it looks up the call.
func ofTenant(ctx context.Context, s *Store, tenant schema.TenantID, id schema.BatchID, r *ResultRecord) (*ResultRecord, error) {
	if r.Tenant == "" && !tenant.Is(schema.DefaultTenant) {
		switch _, err := s.FindCall(ctx, schema.OnlyTenant(tenant), id, r.Index); {
		case schema.KindOf(err) == schema.KindNotFound:
			return nil, nil
		case err != nil:
			return nil, err
		}
		r.Tenant = tenant
	}
	if !r.Tenant.Is(tenant) {
		return nil, nil
	}
	return r, nil
}

// WaitResult waits for the result of one call of the tenant and returns it. The error is that of ctx, or
// [schema.KindNotFound] if the journal has ended without it.
func (s *Store) WaitResult(ctx context.Context, tenant schema.TenantID, id schema.BatchID, index uint64) (*ResultRecord, error) {
	m, err := manifestOf(ctx, s, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	var found *ResultRecord
	errFound := errors.New("found")
	err = follow(ctx, s, schema.AllTenants(), id, Cursor{}, func(page []ResultRecord, _ Cursor) (err error) {
		for i := range page {
			if page[i].Index != index {
				continue
			}
			if found = &page[i]; m.Kind == Lane {
				found, err = ofTenant(ctx, s, tenant, id, found)
			}
			if err != nil || found != nil {
				return cmp.Or(err, errFound)
			}
		}
		return nil
	})
	switch {
	case found != nil:
		return found, nil
	case err != nil:
		return nil, err
	}
	return nil, schema.Errorf(schema.KindNotFound, "Call %d of journal %s has no result, or it has been deleted.", index, id)
}

// findResult reads the effective result of one call, or returns nil if there is none.
func (l *logs) findResult(ctx context.Context, id schema.BatchID, index uint64, after Cursor) (*ResultRecord, error) {
	var found *ResultRecord
	var now EffectiveOutcome
	for from := after.Sequence; ; {
		page, err := l.readToEnd(ctx, id, LogResults, from, readMessages, readBytes)
		if err != nil {
			return nil, unavailable(err)
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			here := false
			if _, err := scanResults(m.Data, func(r Mark) { here = here || r.Index == index }); err != nil {
				return nil, damaged(id, err)
			}
			if !here {
				continue
			}
			_, err := ReadResults(m.Data, func(r *ResultRecord) {
				if r.Index != index {
					return
				}
				if next, counts := Judge(now, r.Mark()); counts {
					now, found = next, nil
					if next.Outcome != 0 {
						kept := *r
						found = &kept
					}
				}
			})
			if err != nil {
				return nil, damaged(id, err)
			}
			if now.Outcome != 0 && !now.Open() {
				return found, nil
			}
		}
		from = page[len(page)-1].Sequence + 1
	}
	return found, nil
}

// openedResults is resultsOf with decrypted bodies.
func openedResults(ctx context.Context, ring *datakey.Ring, of schema.Tenants, id schema.BatchID, page []bus.Message, after Cursor, max int) ([]ResultRecord, Cursor, error) {
	found, next, err := resultsOf(of, id, page, after, max)
	if err == nil {
		err = openResults(ctx, ring, id, found)
	}
	if err != nil {
		return nil, after, err
	}
	return found, next, nil
}

// openedResult returns a result with its body decrypted. It returns nil for nil.
func openedResult(ctx context.Context, ring *datakey.Ring, id schema.BatchID, r *ResultRecord) (*ResultRecord, error) {
	if r == nil {
		return nil, nil
	}
	one := []ResultRecord{*r}
	if err := openResults(ctx, ring, id, one); err != nil {
		return nil, err
	}
	return &one[0], nil
}
