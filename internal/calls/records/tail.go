package records

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Tail names the calls of some messages that follow each other in the log, for those who
// count calls: [Recorder.Changes] tells what these messages changed.
type Tail struct {
	// Until is the sequence of the last of the messages; that of the one before them
	// where there are none.
	Until uint64
	slots map[int64]map[key]uint64 // the last sequence of each call
}

// Tail reads messages that were stored after the given sequence: at most 1,000 of them and
// 1 MiB. It reads from a replica, which may be behind.
func (r *Recorder) Tail(ctx context.Context, after uint64) (*Tail, error) {
	messages, _, err := r.store.s.Read(ctx, bus.SubjectRecord+"*.*", after+1, readCount, readBytes)
	if err != nil {
		return nil, readError(err)
	}
	t := &Tail{Until: after, slots: map[int64]map[key]uint64{}}
	for _, m := range messages {
		t.Until = m.Sequence
		_ = unpack(m.Data, func(k key) bool {
			slot := t.slots[k.slot()]
			if slot == nil {
				slot = map[key]uint64{}
				t.slots[k.slot()] = slot
			}
			slot[k] = m.Sequence
			return false
		}, nil) // readers say what is wrong with it, and skip the rest as well
	}
	return t, nil
}

// Hours returns the hours in which the calls were admitted, in hours since 1970, sorted.
func (t *Tail) Hours() []int64 {
	hours := map[int64]bool{}
	for slot := range t.slots {
		hours[slot/slotsOfHour] = true
	}
	return slices.Sorted(maps.Keys(hours))
}

// storedWithin is how long after its admission the first record of a call is stored, at the
// latest, unless NATS is not reachable.
const storedWithin = 2*runningAfter + storeTimeout

var errBehind = errors.New("a replica has not got the last messages yet")

// Changes calls f for each call of the tail that was admitted in the hour: with what its
// records said up to the message with the sequence counted, nil for nothing, and with what
// they say up to the end of the tail. Records are merged as [Recorder.List] merges them, so
// whoever adds what f is told, message after message, has what List shows.
//
// A call whose earlier records were deleted cannot be told from a new one. oldest is when
// the first message that is kept was stored: calls from before that which nothing is known
// of are left out.
func (r *Recorder) Changes(ctx context.Context, t *Tail, hour int64, counted uint64, oldest time.Time, f func(before, after *Record)) error {
	for _, slot := range slices.Sorted(maps.Keys(t.slots)) {
		if slot/slotsOfHour != hour {
			continue
		}
		if err := r.changes(ctx, slot, t.slots[slot], counted, t.Until, oldest, f); err != nil {
			return err
		}
	}
	return nil
}

// changed is a call as its records say it.
type changed struct{ before, after *Record }

func (r *Recorder) changes(ctx context.Context, slot int64, calls map[key]uint64, counted, until uint64, oldest time.Time, f func(before, after *Record)) error {
	all := make(map[key]*changed, len(calls))
	first, last, end := lastKey(), key{}, uint64(0)
	for k, sequence := range calls {
		if sequence <= counted {
			continue
		}
		all[k] = new(changed)
		if end = max(end, sequence); k.less(first) {
			first = k
		}
		last = later(last, k)
	}
	if len(all) == 0 {
		return nil
	}
	before := last
	before.increment()
	reached := uint64(0)
	_, _, err := r.scan(ctx, slot, first, before, math.MaxInt, func(k key) bool { return all[k] != nil }, func(sequence uint64, k key, next *Record) {
		if sequence > until {
			return
		}
		reached = max(reached, sequence)
		c := all[k]
		if c.after == nil {
			c.after = next
		} else {
			c.after = merge(c.after, next)
		}
		if sequence <= counted {
			c.before = new(*c.after) // merging changes it
		}
	})
	if err == nil && reached < end {
		err = readError(errBehind)
	}
	if err != nil {
		return err
	}
	for _, k := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		if c := all[k]; c.before != nil || !oldest.After(time.UnixMilli(k.milli()).Add(storedWithin)) {
			f(c.before, c.after)
		}
	}
	return nil
}

// LogState is the state of the log that its readers need: when its stream was made, the
// sequence of the last message, and when the first one was stored.
type LogState struct {
	Created, Oldest time.Time
	Last            uint64
	// Dropped says that there were earlier messages.
	Dropped bool
}

// State returns the state of the log.
func (r *Recorder) State(ctx context.Context) (LogState, error) {
	s, err := r.store.s.State(ctx)
	if err != nil {
		return LogState{}, readError(err)
	}
	return LogState{Created: s.Created, Oldest: s.Oldest, Last: s.Last, Dropped: s.First > 1}, nil
}

// HourOf returns the hour in which a call with the id was admitted, in hours since 1970.
func HourOf(id schema.CallID) (hour int64, ok bool) {
	k, ok := keyOf(string(id))
	return k.slot() / slotsOfHour, ok
}
