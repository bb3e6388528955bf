package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// firstWindow is the number of messages in the first backward read. windowMessages and
	// windowBytes limit later reads. A message can hold many records, so a page without a filter
	// needs few messages.
	firstWindow    = 8
	windowMessages = 256
	windowBytes    = 4 << 20
)

// Newest returns a page of the matching records of these tenants, last stored first, and the cursor of
// the next page, or "" on the last page. A page can be shorter than its limit, or empty, and still have
// a next cursor. Unreadable records are skipped; [Reader.Verify] reports them. Errors:
// KindInvalidRequest for an invalid cursor; KindUnavailable if the record cannot be read.
func (l *Reader) Newest(ctx context.Context, of schema.Tenants, f Filter, cursor string) (found []Record, next string, err error) {
	limit := min(cmp.Or(max(f.Limit, 0), 100), 1000)
	low, high, skip, err := l.bounds(ctx, &f, cursor)
	if err != nil {
		return nil, "", err
	}
	for looked, size := 0, uint64(firstWindow); high >= low; size = min(4*size, windowMessages) {
		if looked >= readMessages {
			return found, fmt.Sprintf("%d-0", high), nil
		}
		from := max(low, high-min(high, size-1), 1)
		window, err := l.store.window(ctx, from, high)
		if err != nil {
			return nil, "", unreadable(err)
		}
		looked += int(high - from + 1)
		for i := len(window) - 1; i >= 0; i-- {
			records := recordsOf(window[i].Data)
			if window[i].Sequence != high {
				skip = 0
			}
			for n := len(records) - 1 - skip; n >= 0; n-- {
				r := records[n]
				if r == nil || !f.matches(of, r) {
					continue
				}
				if len(found) == limit {
					return found, fmt.Sprintf("%d-%d", window[i].Sequence, len(records)-1-n), nil
				}
				found = append(found, *r)
			}
			skip = 0
		}
		high, skip = from-1, 0
	}
	return found, "", nil
}

// bounds returns the first and the last message of a page of the newest records, and the number of
// records of the last one that were on the previous page.
func (l *Reader) bounds(ctx context.Context, f *Filter, cursor string) (low, high uint64, skip int, err error) {
	state, err := l.store.s.State(ctx)
	if err != nil {
		return 0, 0, 0, unreadable(err)
	}
	low, high = max(state.First, 1), state.Last
	switch {
	case cursor != "":
		left, right, _ := strings.Cut(cursor, "-")
		if high, err = strconv.ParseUint(left, 10, 64); err == nil {
			skip, err = strconv.Atoi(right)
		}
		if err != nil || skip < 0 {
			return 0, 0, 0, schema.Errorf(schema.KindInvalidRequest, "This cursor is invalid; start again without a cursor.")
		}
		high = min(high, state.Last)
	case !f.Until.IsZero():
		// Records are stored soon after their event, by clocks that differ slightly.
		after, err := l.store.since(ctx, f.Until.Add(slack))
		if err != nil {
			return 0, 0, 0, unreadable(err)
		}
		high = min(high, after)
	}
	if !f.Since.IsZero() {
		first, err := l.store.since(ctx, f.Since.Add(-slack))
		if err != nil {
			return 0, 0, 0, unreadable(err)
		}
		low = max(low, first)
	}
	return low, high, skip, nil
}

func unreadable(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The audit log cannot be read; check that NATS is running. (%w)", err)
}

// recordsOf returns the records of a message, with nil in place of unreadable ones.
func recordsOf(data []byte) (all []*Record) {
	for line := range bytes.Lines(data) {
		r, err := parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			r = nil
		}
		all = append(all, r)
	}
	return all
}

// window reads the messages with sequences from from to to, in order. It does not set writer and time.
func (t *store) window(ctx context.Context, from, to uint64) (all []message, err error) {
	for from <= to {
		some, _, err := t.s.Read(ctx, bus.SubjectAudit+"*", from, int(to-from+1), windowBytes)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 { // a replica may lag
			m, err := t.next(ctx, from)
			if errors.Is(err, bus.ErrNotFound) {
				return all, nil
			}
			if err != nil {
				return nil, err
			}
			some = []bus.Message{{Sequence: m.Sequence, Data: m.Data}}
		}
		for i := range some {
			if some[i].Sequence > to {
				return all, nil
			}
			all = append(all, message{Sequence: some[i].Sequence, Data: some[i].Data})
		}
		from = some[len(some)-1].Sequence + 1
	}
	return all, nil
}
