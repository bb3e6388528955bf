package records

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// eachCalls limits the number of calls of one hour that [Recorder.Each] holds in memory. It reads
// a fuller hour slot by slot.
const eachCalls = 50_000

// Each calls visit for each call of the given tenants that matches the filter, newest first, until
// visit returns false. It is for scans of all calls of some days: it reads an hour with few
// requests, while [Recorder.List] sends one per slot. visit may keep the record. Memory is bounded.
func (r *Recorder) Each(ctx context.Context, of schema.Tenants, f Filter, visit func(*Record) bool) error {
	if err := r.Sync(ctx); err != nil {
		return err
	}
	f.tenants = of
	from, before := f.span()
	hours, err := r.store.hours(ctx)
	if err != nil {
		return readError(err)
	}
	for _, hour := range hours {
		first, next := slotStart(hour*slotsOfHour), slotStart((hour+1)*slotsOfHour)
		if !first.less(before) {
			continue
		}
		if !from.less(next) {
			return nil // the remaining hours are older
		}
		rows, whole, err := r.hour(ctx, hour, laterKey(from, first), before, &f)
		if err != nil {
			return readError(err)
		}
		var more bool
		if whole {
			more = r.visitAll(rows, &f, visit)
		} else if more, err = r.eachOfSlots(ctx, f, laterKey(from, first), next, before, visit); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
	return nil
}

// visitAll calls visit for each matching call, newest first, until visit returns false.
func (r *Recorder) visitAll(rows map[key]*Record, f *Filter, visit func(*Record) bool) bool {
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b key) int { return compareKeys(b, a) })
	for _, k := range keys {
		rec := rows[k]
		if r.shows(rec, f) && !visit(rec) {
			return false
		}
	}
	return true
}

// hour reads the calls of an hour that may match. whole is false if there are too many.
func (r *Recorder) hour(ctx context.Context, hour int64, from, before key, f *Filter) (rows map[key]*Record, whole bool, err error) {
	rows = make(map[key]*Record)
	want := func(k key) bool { return !k.less(from) && k.less(before) }
	err = r.store.readHour(ctx, hour, func(data []byte) bool {
		_ = unpack(data, want, func(k key, next *Record) { // a reader of the slot logs decoding errors
			if !f.may(next) {
				return
			}
			if was := rows[k]; was != nil {
				next = merge(was, next)
			}
			rows[k] = next
		})
		return len(rows) <= eachCalls
	})
	return rows, len(rows) <= eachCalls, err
}

// eachOfSlots calls visit for the calls with keys in [from, before), page by page.
func (r *Recorder) eachOfSlots(ctx context.Context, f Filter, from, next, before key, visit func(*Record) bool) (more bool, err error) {
	cursor := before
	if next.less(before) {
		cursor = next
	}
	for at := cursor.String(); at != ""; {
		var page []Record
		if page, at, err = r.List(ctx, f.tenants, f, at, mostPage); err != nil {
			return false, err
		}
		for i := range page {
			if k, ok := keyOf(string(page[i].ID)); ok && k.less(from) {
				return true, nil
			}
			if !visit(&page[i]) {
				return false, nil
			}
		}
		if k, ok := bareKey(at); ok && !from.less(k) {
			break
		}
	}
	return true, nil
}

// hours returns the hours that have slots, newest first.
func (s *store) hours(ctx context.Context) ([]int64, error) {
	slots, err := s.fitting(ctx, bus.SubjectRecord+"*.*", lastKey().slot())
	if err != nil {
		return nil, err
	}
	hours := slots[:0]
	for _, slot := range slots {
		hours = append(hours, slot/slotsOfHour)
	}
	return slices.Compact(hours), nil
}

// readHour calls f with each message of the slots of an hour, until f returns false.
func (s *store) readHour(ctx context.Context, hour int64, f func(data []byte) bool) error {
	subject := bus.SubjectRecord + strconv.FormatInt(hour, 10) + ".*"
	for from := uint64(0); ; {
		found, more, err := s.s.Read(ctx, subject, from, readCount, readBytes)
		if err != nil {
			return err
		}
		for _, m := range found {
			if !f(m.Data) {
				return nil
			}
			from = m.Sequence + 1
		}
		if !more {
			return nil
		}
	}
}
