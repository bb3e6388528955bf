package records

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Tail is a run of consecutive messages in the log, for incremental counting. [Recorder.Changes]
// returns the changes in these messages.
type Tail struct {
	// Until is the sequence of the last message, or of the message before the tail if it is
	// empty.
	Until uint64
	after uint64 // the sequence of the message before the tail
	slots map[int64]*tailOfSlot
	// torn is set if a message contains no readable record, so that its slot is unknown.
	torn bool
}

// tailOfSlot holds the messages of a tail in one slot.
type tailOfSlot struct {
	messages []bus.Message
	parts    []part // their index entries
	calls    map[key]callPosition
}

// callPosition locates a call in a tail.
type callPosition struct {
	last    uint64 // the sequence of the last message with a record of it
	records int
}

// Tail reads messages that were stored after the given sequence: at most 1,000 messages and 1 MiB.
// It reads from a replica, which may lag.
func (r *Recorder) Tail(ctx context.Context, after uint64) (*Tail, error) {
	return r.tail(ctx, after, readCount)
}

func (r *Recorder) tail(ctx context.Context, after uint64, most int) (*Tail, error) {
	messages, _, err := r.store.s.Read(ctx, bus.SubjectRecord+"*.*", after+1, most, readBytes)
	if err != nil {
		return nil, readError(err)
	}
	t := &Tail{Until: after, after: after, slots: map[int64]*tailOfSlot{}}
	for _, m := range messages {
		t.Until = m.Sequence
		t.add(m)
	}
	return t, nil
}

// add appends a message. All records of a message are in one slot.
func (t *Tail) add(m bus.Message) {
	var of *tailOfSlot
	p := part{sequence: m.Sequence, first: lastKey()}
	_ = unpack(m.Data, func(k key) bool {
		if of == nil {
			if of = t.slots[k.slot()]; of == nil {
				of = &tailOfSlot{calls: map[key]callPosition{}}
				t.slots[k.slot()] = of
			}
		}
		p.add(k)
		of.calls[k] = callPosition{m.Sequence, of.calls[k].records + 1}
		return false
	}, nil) // readers log decoding errors, and skip the rest as well
	if of == nil {
		t.torn = true
		return
	}
	of.messages, of.parts = append(of.messages, m), append(of.parts, p)
}

// Hours returns the admission hours of the calls, in hours since 1970, sorted.
func (t *Tail) Hours() []int64 {
	hours := map[int64]bool{}
	for slot := range t.slots {
		hours[slot/slotsOfHour] = true
	}
	return slices.Sorted(maps.Keys(hours))
}

// storedWithin is the maximum time from the admission of a call to the storage of its first record,
// as long as NATS is reachable.
const storedWithin = 2*runningAfter + storeTimeout

var errBehind = errors.New("a replica has not got the last messages yet")

// Changes calls f for each call of the tail that was admitted in the hour. before is the call
// according to its records up to the sequence counted, or nil if there are none; after is the call
// at the end of the tail. f must not keep either. Records are merged as in [Recorder.List], so the
// sum of the changes over consecutive tails equals the calls that List returns.
//
// A call whose earlier records were deleted looks like a new one. oldest is the storage time of the
// first message in the stream; calls that are older and otherwise unknown are skipped.
func (r *Recorder) Changes(ctx context.Context, t *Tail, hour int64, counted uint64, oldest time.Time, f func(before, after *Record)) error {
	for _, slot := range slices.Sorted(maps.Keys(t.slots)) {
		if slot/slotsOfHour != hour {
			continue
		}
		if err := r.changes(ctx, t, slot, counted, oldest, f); err != nil {
			return err
		}
	}
	return nil
}

// changed holds the two states of a call for [Recorder.Changes].
type changed struct{ before, after *Record }

// add merges a record. counted reports whether the record was counted before.
func (c *changed) add(next *Record, counted bool) {
	if c.after == nil {
		c.after = next
	} else {
		c.after = merge(c.after, next)
	}
	if counted {
		c.before = new(*c.after) // a copy, because merge modifies it
	}
}

// changes is [Recorder.Changes] for one slot. Most calls have one record, which is passed on
// directly, so that the memory for a tail is only that of its messages.
func (r *Recorder) changes(ctx context.Context, t *Tail, slot int64, counted uint64, oldest time.Time, f func(before, after *Record)) error {
	of := t.slots[slot]
	first, last := lastKey(), key{}
	for k, m := range of.calls {
		if m.last <= counted {
			continue
		}
		if k.less(first) {
			first = k
		}
		last = laterKey(last, k)
	}
	if last.less(first) {
		return nil
	}
	want := func(k key) bool { return of.calls[k].last > counted }
	several := make(map[key]*changed)
	add := func(sequence uint64, k key, next *Record) {
		if several[k] == nil {
			several[k] = new(changed)
		}
		several[k].add(next, sequence <= counted)
	}
	if err := r.earlier(ctx, t, slot, first, last, want, add); err != nil {
		return err
	}
	kept := func(k key) bool { return !oldest.After(time.UnixMilli(k.milli()).Add(storedWithin)) }
	var one Record
	for _, m := range of.messages {
		_ = unpackInto(&one, m.Data, want, func(k key, next *Record) { // the rest of a torn message is skipped
			switch {
			case several[k] != nil || of.calls[k].records > 1:
				add(m.Sequence, k, new(*next))
			case kept(k):
				f(nil, next)
			}
		})
	}
	for _, k := range slices.SortedFunc(maps.Keys(several), compareKeys) {
		if c := several[k]; c.before != nil || kept(k) {
			f(c.before, c.after)
		}
	}
	return nil
}

// earlier calls f with the wanted records of a slot, with keys from first to last, in the messages
// before a tail. It adds the messages of the tail to the index of the slot, so that no message is
// read twice during uninterrupted counting.
func (r *Recorder) earlier(ctx context.Context, t *Tail, slot int64, first, last key, want func(key) bool, f found) error {
	of := t.slots[slot]
	x, err := r.indexBefore(ctx, t, slot)
	if err != nil {
		return err
	}
	size := 0
	if !t.torn {
		size = x.extend(t.after, t.Until, of.parts)
	}
	if size == 0 {
		if _, err := r.follow(ctx, x, func(key) bool { return false }, nil); err != nil {
			return err
		}
		var reached uint64
		if reached, size = x.reach(); reached < of.parts[len(of.parts)-1].sequence {
			return readError(errBehind)
		}
	}
	if size >= indexFrom {
		r.indexes.put(x, size)
	}
	last.increment()
	parts, _, _ := x.newest(first, last, math.MaxInt)
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.sequence > t.after })
	n, err := r.read(ctx, x, parts, want, func(sequence uint64, k key, next *Record) {
		if sequence <= t.after {
			f(sequence, k, next)
		}
	})
	if err == nil && n < len(parts) { // or they were deleted
		r.indexes.drop(x)
		err = readError(errBehind)
	}
	return err
}

// indexBefore returns the index of a slot. A new index is complete up to the tail if the slot starts
// in the tail; otherwise it is empty.
func (r *Recorder) indexBefore(ctx context.Context, t *Tail, slot int64) (*index, error) {
	if x := r.indexes.get(slot); x != nil {
		return x, nil
	}
	x := &index{slot: slot}
	n, err := r.store.read(ctx, slot, 0, 1, func(sequence uint64, _ []byte) {
		if sequence > t.after {
			x.last = t.after
		}
	})
	if err == nil && n == 0 {
		err = errBehind
	}
	return x, readError(err)
}

// LogState is the state of the log that its readers need: the creation time of its stream, the last
// sequence, and the storage time of the first message.
type LogState struct {
	Created, Oldest time.Time
	Last            uint64
	// Dropped is set if earlier messages were removed.
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
