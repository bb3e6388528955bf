package records

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	defaultPage = 100
	mostPage    = 1000
	// pageMessages limits the number of messages read for one page, even if it is not full.
	pageMessages = 800
	// atOnce is the approximate number of calls of a slot that a reader holds in memory. It reads
	// the others after them.
	atOnce = 4 * mostPage
)

// Get returns the record of a call of these tenants, or an error of [schema.KindNotFound]. It reads
// the records of the 10 s in which the call was admitted. Changes that another front door recorded
// less than 100 ms ago may be missing.
func (r *Recorder) Get(ctx context.Context, of schema.Tenants, id schema.CallID) (*Record, error) {
	found, err := r.Find(ctx, of, id)
	if err != nil {
		return nil, err
	}
	if found[id] == nil {
		return nil, schema.Errorf(schema.KindNotFound, "There is no record of call %q: it was never admitted, or its record has been deleted.", id)
	}
	return found[id], nil
}

// Find is [Recorder.Get] for many calls. Calls without a record are not in the map. The records of
// each 10 s slot are read once, regardless of the number of calls in it.
func (r *Recorder) Find(ctx context.Context, of schema.Tenants, ids ...schema.CallID) (map[schema.CallID]*Record, error) {
	wanted, slots := make(map[schema.CallID]bool, len(ids)), make(map[int64]map[key]bool)
	for _, id := range ids {
		k, ok := keyOf(string(id))
		if !ok {
			continue
		}
		wanted[id] = true
		if slots[k.slot()] == nil {
			slots[k.slot()] = make(map[key]bool)
		}
		slots[k.slot()][k] = true
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	if err := r.Sync(ctx); err != nil {
		return nil, err
	}
	found := make(map[schema.CallID]*Record, len(wanted))
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		keys := slices.SortedFunc(maps.Keys(slots[slot]), compareKeys)
		after := keys[len(keys)-1]
		after.increment()
		_, _, err := r.scan(ctx, slot, keys[0], after, math.MaxInt, func(k key) bool { return slots[slot][k] }, func(_ uint64, _ key, next *Record) {
			switch was := found[next.ID]; {
			case !wanted[next.ID]: // same key with another prefix
			case was == nil:
				found[next.ID] = next
			default:
				found[next.ID] = merge(was, next)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(found, func(_ schema.CallID, rec *Record) bool { return !of.Include(rec.Tenant) })
	for _, rec := range found {
		r.resolve(rec)
	}
	return found, nil
}

// EndsWithFrontDoor reports whether the outcome of the call becomes unknown if its front door
// stops: the call has not ended, and no other front door takes it over.
func (r *Record) EndsWithFrontDoor() bool {
	return !r.Durable && (r.State == schema.StateRunning || r.State == schema.StateQueued)
}

// ContinuesElsewhere reports whether the record is that of one owner of a journal for a call that has
// not ended. The next owner of the journal continues the call under another record id, so from then on
// this record is not counted or listed any longer.
func (r *Record) ContinuesElsewhere() bool {
	return !r.Dropped && r.Durable && r.Known != "" && (r.State == schema.StateRunning || r.State == schema.StateQueued)
}

// shows prepares a record for display and reports whether the filter selects it.
func (r *Recorder) shows(rec *Record, f *Filter) bool {
	r.resolve(rec)
	return !rec.Dropped && f.matches(rec) && (!rec.ContinuesElsewhere() || r.owns(rec))
}

// owns reports whether the front door of a record owns the journal of its call. When a journal ends, the
// last ends of its calls may not be stored yet.
func (r *Recorder) owns(rec *Record) bool {
	if r.owner == nil {
		return r.Alive(rec.FrontDoor)
	}
	owner, ended := r.owner(rec.Known)
	return owner == rec.FrontDoor && (!ended || r.Alive(owner))
}

// Owners returns a function that reports whether a front door owns a journal that has not ended. Other
// records that continue elsewhere are those of earlier owners.
func (r *Recorder) Owners() func(frontDoor string) bool {
	if r.owners == nil {
		return r.Alive
	}
	owners := r.owners()
	return func(frontDoor string) bool { return owners[frontDoor] }
}

// Alive reports whether a front door is alive or may be; see [Options].
func (r *Recorder) Alive(frontDoor string) bool { return r.alive == nil || r.alive(frontDoor) }

// detailWithheld replaces the error message of a call after its retention period.
const detailWithheld = "The error is no longer shown, because the retention of the tenant has ended."

// withheld reports whether the error message of the record must be hidden.
func (r *Recorder) withheld(rec *Record) bool {
	return rec.Detail != "" && r.retention.Over(rec.Tenant, time.Unix(0, cmp.Or(rec.Ended, rec.Changed)), r.now())
}

// resolve prepares a record for display: it decrypts or hides the error message, and sets the
// state of a call that a stopped front door left unfinished to unknown. Durable calls are excluded,
// because another front door takes them over and records their outcome.
func (r *Recorder) resolve(rec *Record) {
	if r.withheld(rec) {
		rec.Detail = detailWithheld
	} else {
		rec.Detail = r.opened(rec.Detail)
	}
	if !rec.EndsWithFrontDoor() || r.Alive(rec.FrontDoor) {
		return
	}
	rec.State, rec.Error = schema.StateUnknown, schema.KindOutcomeUnknown
	rec.Detail = "The front door that had this call has stopped; the outcome of the call is unknown."
}

// List returns a page of the matching calls of these tenants, newest first, and the cursor of the
// next page, or "" if it is the last. The limit defaults to 100 and is at most 1,000. A page can be
// shorter than its limit, or empty, and still have a next cursor. Changes that another front door
// recorded less than 100 ms ago may be missing.
func (r *Recorder) List(ctx context.Context, of schema.Tenants, f Filter, cursor string, limit int) ([]Record, string, error) {
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, mostPage)
	f.tenants = of
	from, before := f.span()
	if cursor != "" {
		at, ok := bareKey(cursor)
		if !ok {
			return nil, "", schema.Errorf(schema.KindInvalidRequest, "This cursor is invalid; start again without a cursor.")
		}
		if at.less(before) {
			before = at
		}
	}
	for _, s := range f.States {
		if !s.Known() {
			return nil, "", schema.Errorf(schema.KindInvalidRequest, "%q is not a state of a call: use held, queued, running, succeeded, failed, denied, expired, canceled or unknown.", s)
		}
	}
	if err := r.Sync(ctx); err != nil {
		return nil, "", err
	}
	l := listing{Recorder: r, filter: &f, from: from, before: before, limit: limit, reach: 2 * limit}
	for l.budget = pageMessages; l.budget > 0 && len(l.found) < limit; {
		more, err := l.step(ctx)
		if err != nil {
			return nil, "", err
		}
		if !more {
			return l.found, "", nil
		}
	}
	return l.found, l.before.String(), nil
}

// listing is the state of a page while it is read, from newer to older slots.
type listing struct {
	*Recorder
	filter *Filter
	from   key
	before key // exclusive upper bound of the keys still to read
	limit  int
	budget int     // messages that may still be read
	reach  int     // number of calls to read next from a large slot
	slots  []int64 // slots with messages, newest first
	found  []Record
}

// step reads one slot, or the newest part of a large one. It returns false if there are no older
// slots.
func (l *listing) step(ctx context.Context) (bool, error) {
	if !l.from.less(l.before) {
		return false, nil
	}
	last := l.before
	last.decrement()
	for len(l.slots) > 0 && l.slots[0] > last.slot() {
		l.slots = l.slots[1:]
	}
	if len(l.slots) == 0 {
		var err error
		if l.slots, err = l.store.slots(ctx, last.slot()+1); err != nil {
			return false, schema.Errorf(schema.KindUnavailable, "The call records cannot be read at the moment; check that NATS is running. (%w)", err)
		}
		if len(l.slots) == 0 {
			return false, nil
		}
	}
	slot := l.slots[0]
	if slot < l.from.slot() {
		return false, nil
	}
	calls, err := l.slot(ctx, slot)
	if err != nil {
		return false, err
	}
	l.before = laterKey(calls.floor, slotStart(slot))
	for _, k := range calls.newest() {
		rec := calls.rows[k]
		if !l.shows(rec, l.filter) {
			continue
		}
		l.found = append(l.found, *rec)
		if len(l.found) == l.limit {
			l.before = k
			break
		}
	}
	return true, nil
}

// slot reads the newest calls of a slot that may match.
func (l *listing) slot(ctx context.Context, slot int64) (*newestCalls, error) {
	calls := &newestCalls{rows: map[key]*Record{}}
	floor, n, err := l.scan(ctx, slot, l.from, l.before, l.reach, func(k key) bool {
		return !k.less(l.from) && k.less(l.before) && !k.less(calls.floor)
	}, func(_ uint64, k key, r *Record) {
		if l.filter.may(r) {
			calls.add(k, r)
		}
	})
	l.budget -= max(n, 1)
	l.reach = min(2*l.reach, atOnce) // read more, because few calls match
	if err != nil {
		return nil, err
	}
	calls.floor = laterKey(calls.floor, floor)
	calls.shrink()
	return calls, nil
}

// newestCalls collects the calls with the highest keys, at least atOnce of them if there are that many.
// Calls below floor were dropped.
type newestCalls struct {
	rows  map[key]*Record
	floor key
}

func (n *newestCalls) add(k key, r *Record) {
	if was := n.rows[k]; was != nil {
		r = merge(was, r)
	}
	n.rows[k] = r
	if len(n.rows) >= 2*atOnce {
		n.shrink()
	}
}

// shrink drops all but the newest calls.
func (n *newestCalls) shrink() {
	if len(n.rows) <= atOnce {
		return
	}
	keys := n.newest()
	for _, k := range keys[atOnce:] {
		delete(n.rows, k)
	}
	n.floor = keys[atOnce-1]
}

// newest returns the keys, highest first.
func (n *newestCalls) newest() []key {
	keys := make([]key, 0, len(n.rows))
	for k := range n.rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return compareKeys(b, a) })
	return keys
}
