package journal

import (
	"context"
	"fmt"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// GapError means that records of accepted calls are missing, as after damage to the files of NATS:
// those with indexes in [First, Next). It is a [schema.Error] of KindOutcomeUnknown. It was confirmed
// by the stream's leader, so it is not caused by a lagging replica.
type GapError struct {
	Journal     schema.BatchID
	First, Next uint64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("the records of calls %d to %d of journal %s are lost", e.First, e.Next-1, e.Journal)
}

// Unwrap returns the error for callers.
func (e *GapError) Unwrap() error { return LostCall("") }

// lostRecord ends the error messages about lost records.
const lostRecord = "its record was lost with a damaged data folder: its outcome is unknown, and it is not run again."

// LostCall returns the error for a call whose record was lost; id may be "".
func LostCall(id schema.CallID) *schema.Error {
	e := schema.Errorf(schema.KindOutcomeUnknown, "The call was accepted, and "+lostRecord+" Check its effects, and send it as a new call to run it.")
	if id != "" {
		e = e.WithCall(id)
	}
	return e
}

// LostBatch returns the error for a batch whose record was lost.
func LostBatch() *schema.Error {
	return schema.Errorf(schema.KindOutcomeUnknown, "The batch was accepted, and "+lostRecord+" Check the effects of its calls, and send the missing ones as a new batch.")
}

// LostKey returns the error for a request with an idempotency key whose record, or whose call's record,
// was lost.
func LostKey() *schema.Error {
	return schema.Errorf(schema.KindOutcomeUnknown, "A request was accepted under this Idempotency-Key, and "+lostRecord+" Check its effects, and use a new key to run it.")
}

// pageOf reads the first message of a log of calls with at least the sequence from. It returns a zero
// message if there is none.
type pageOf func(ctx context.Context, from uint64) (bus.Message, error)

// nearest reads from any replica.
func (l *logs) nearest(id schema.BatchID) pageOf {
	return func(ctx context.Context, from uint64) (bus.Message, error) {
		page, err := l.Read(ctx, id, LogCalls, from, 1, 1)
		if err != nil || len(page) == 0 {
			return bus.Message{}, unavailable(err)
		}
		return page[0], nil
	}
}

// leading reads from the leader.
func (l *logs) leading(id schema.BatchID) pageOf {
	return func(ctx context.Context, from uint64) (bus.Message, error) {
		m, err := l.next(ctx, id, LogCalls, from)
		if isNotFound(err) {
			return bus.Message{}, nil
		}
		return m, unavailable(err)
	}
}

// findCalls returns the message that holds the call with the index. It returns a zero message if there
// is none yet, and a [*GapError] if it was lost.
func (l *logs) findCalls(ctx context.Context, id schema.BatchID, index uint64) (bus.Message, error) {
	m, after, err := l.search(ctx, id, index, l.nearest(id))
	if err != nil || m.Sequence != 0 || after == 0 {
		return m, err
	}
	return l.confirm(ctx, id, index)
}

// confirm is findCalls for a call that a replica does not have although it has later ones.
func (l *logs) confirm(ctx context.Context, id schema.BatchID, index uint64) (bus.Message, error) {
	m, after, err := l.search(ctx, id, index, l.leading(id))
	if err != nil || m.Sequence != 0 || after == 0 {
		return m, err
	}
	return m, &GapError{Journal: id, First: index, Next: after}
}

// search finds the call with the index by binary search over the sequences of the stream. If the call is
// missing but later ones exist, after is the index of the next one, else 0.
func (l *logs) search(ctx context.Context, id schema.BatchID, index uint64, next pageOf) (m bus.Message, after uint64, err error) {
	none := bus.Message{}
	where := func(m bus.Message) (int, error) {
		h, _, err := ReadHead(m.Data, LogCalls)
		switch {
		case err != nil:
			return 0, damaged(id, err)
		case h.First+uint64(h.Count) <= index:
			return -1, nil
		case h.First > index:
			after = h.First
			return 1, nil
		}
		return 0, nil
	}
	if index == 0 { // the start needs no search, unless several writers took over before there were calls
		m, err := next(ctx, 1)
		if err != nil || m.Sequence == 0 {
			return none, 0, err
		}
		if at, err := where(m); err != nil || at == 0 {
			return m, 0, err
		}
		after = 0
	}
	last, err := l.Last(ctx, id, LogCalls)
	if isNotFound(err) {
		return none, 0, nil
	}
	if err != nil {
		return none, 0, unavailable(err)
	}
	if at, err := where(last); err != nil || at < 0 {
		return none, 0, err
	} else if at == 0 {
		return last, 0, nil
	}
	low, high := uint64(1), last.Sequence-1
	for low <= high {
		mid := low + (high-low)/2
		m, err := next(ctx, mid)
		if err != nil {
			return none, 0, err
		}
		if m.Sequence == 0 || m.Sequence > high {
			high = mid - 1
			continue
		}
		at, err := where(m)
		switch {
		case err != nil:
			return none, 0, err
		case at == 0:
			return m, 0, nil
		case at < 0:
			low = m.Sequence + 1
		default:
			high = mid - 1
		}
	}
	return none, after, nil
}

// Complete reports whether each call of an ended journal has its result. It reads all results; a million
// take a second or more.
func (s *Store) Complete(ctx context.Context, m *Manifest) (bool, error) {
	last, err := s.logs.Last(ctx, m.ID, LogResults)
	if isNotFound(err) {
		return m.Calls == 0, nil
	}
	if err != nil {
		return false, unavailable(err)
	}
	p := newProgress(m.Calls)
	err = s.logs.readAll(ctx, m.ID, LogResults, last.Sequence, func(data []byte) error {
		_, err := scanResults(data, p.stored)
		return err
	})
	return err == nil && p.Next(0) >= m.Calls, err
}
