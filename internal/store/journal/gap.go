package journal

import (
	"context"
	"fmt"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// GapError means that the records of calls which were accepted are not there any more,
// as after damage to the files of NATS: those of the indexes from First up to, and
// without, Next. It is a [schema.Error] of KindOutcomeUnknown. The stream's leader was
// asked: no replica is only behind.
type GapError struct {
	Journal     schema.BatchID
	First, Next uint64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("the records of calls %d to %d of journal %s are lost", e.First, e.Next-1, e.Journal)
}

// Unwrap is what a caller is told.
func (e *GapError) Unwrap() error { return LostCall("") }

// nobodyKnows ends what is said of everything whose record was lost.
const nobodyKnows = "its record was lost with a damaged data folder: its outcome is unknown, and it is not run again."

// LostCall is the answer for a call whose record was lost; id may be "".
func LostCall(id schema.CallID) *schema.Error {
	e := schema.Errorf(schema.KindOutcomeUnknown, "The call was accepted, and "+nobodyKnows+" Check its effects, and send it as a new call to run it.")
	if id != "" {
		e = e.WithCall(id)
	}
	return e
}

// LostBatch is the answer for a batch whose record was lost.
func LostBatch() *schema.Error {
	return schema.Errorf(schema.KindOutcomeUnknown, "The batch was accepted, and "+nobodyKnows+" Check the effects of its calls, and send the missing ones as a new batch.")
}

// LostKey is the answer for a request under an idempotency key whose record, or that of
// the call that the key stands for, was lost.
func LostKey() *schema.Error {
	return schema.Errorf(schema.KindOutcomeUnknown, "A request was accepted under this Idempotency-Key, and "+nobodyKnows+" Check its effects, and use a new key to run it.")
}

// pageOf reads the first message of a log of calls with at least a sequence; a zero
// message where there is none.
type pageOf func(ctx context.Context, from uint64) (bus.Message, error)

// nearest asks any replica.
func (l *logs) nearest(id schema.BatchID) pageOf {
	return func(ctx context.Context, from uint64) (bus.Message, error) {
		page, err := l.Read(ctx, id, LogCalls, from, 1, 1)
		if err != nil || len(page) == 0 {
			return bus.Message{}, unavailable(err)
		}
		return page[0], nil
	}
}

// leading asks the leader.
func (l *logs) leading(id schema.BatchID) pageOf {
	return func(ctx context.Context, from uint64) (bus.Message, error) {
		m, err := l.next(ctx, id, LogCalls, from)
		if isNotFound(err) {
			return bus.Message{}, nil
		}
		return m, unavailable(err)
	}
}

// findCalls returns the message that holds the call with the index; a zero message when
// there is none yet, and a [*GapError] when it is lost.
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

// search looks for the call with the index, by binary search over the sequences of the
// stream. after is the index of the first call behind it, where it is not there but
// later ones are, else 0.
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
	if index == 0 { // the beginning needs no search, unless one writer followed the other before there were calls
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

// Complete says that each call of a journal that has ended has its result. It reads all
// of them; a million take a second or more.
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
