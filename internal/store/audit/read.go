package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Reader reads the audit record. It is safe for concurrent use.
type Reader struct{ store *store }

// OpenReader opens the audit record read-only and creates nothing; ctx bounds the opening. The caller
// still owns the connection. The error is of KindNotFound if there is no audit record.
func OpenReader(ctx context.Context, conn *bus.Conn) (*Reader, error) {
	store, err := openStore(ctx, conn, bus.FindStream, bus.FindBucket)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, schema.Errorf(schema.KindNotFound, "There is no audit log on this NATS server; a front door or an approver creates it when it starts.")
	}
	if err != nil {
		return nil, err
	}
	return &Reader{store}, nil
}

// Filter selects records. An empty field matches all.
type Filter struct {
	Kinds      []Kind
	CallID     schema.CallID
	ApprovalID schema.ApprovalID
	By         string
	Server     schema.ServerID
	Tool       string
	Operation  string // of an operator's request
	// Since (inclusive) and Until (exclusive) bound the time of the event.
	Since, Until time.Time
	// Limit is the maximum length of a page. It defaults to 100 and is at most 1,000.
	Limit int
}

func (f *Filter) matches(of schema.Tenants, r *Record) bool {
	return of.Include(r.Tenant) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, r.Kind)) && is(f.CallID, r.CallID) && is(f.ApprovalID, r.ApprovalID) &&
		is(f.By, r.By) && is(f.Server, r.Server) && is(f.Tool, r.Tool) && is(f.Operation, r.Operation) &&
		(f.Since.IsZero() || !r.At.Before(f.Since)) && (f.Until.IsZero() || r.At.Before(f.Until))
}

// is reports whether got equals want. An empty want matches any.
func is[S ~string](want, got S) bool { return want == "" || want == got }

// readMessages limits the messages that are read for one page.
const readMessages = 5000

// Read returns a page of the matching records of these tenants, in stored order, and the cursor of the
// next page, or "" on the last page. A page can be shorter than its limit, or empty, and still have a
// next cursor. Unreadable records are skipped; [Reader.Verify] reports them.
func (l *Reader) Read(ctx context.Context, of schema.Tenants, f Filter, cursor string) ([]Record, string, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, 1000)
	next, skip, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	var found []Record
	for range readMessages {
		m, err := l.store.next(ctx, next)
		if errors.Is(err, bus.ErrNotFound) {
			return found, "", nil
		}
		if err != nil {
			return nil, "", unreadable(err)
		}
		if m.Sequence != next {
			skip = 0
		}
		n := 0
		for line := range bytes.Lines(m.Data) {
			if n++; n <= skip {
				continue
			}
			r, err := parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
			if err != nil || !f.matches(of, r) {
				continue
			}
			if len(found) == limit {
				return found, fmt.Sprintf("%d-%d", m.Sequence, n-1), nil
			}
			found = append(found, *r)
		}
		next, skip = m.Sequence+1, 0
	}
	return found, fmt.Sprintf("%d-0", next), nil
}

// Since calls f with each record of these tenants that was stored since then, in stored order, until f
// returns false. Unreadable records are skipped.
func (l *Reader) Since(ctx context.Context, of schema.Tenants, since time.Time, f func(*Record) bool) error {
	next, err := l.store.since(ctx, since)
	for err == nil {
		var m message
		if m, err = l.store.next(ctx, next); err != nil {
			break
		}
		for line := range bytes.Lines(m.Data) {
			if r, err := parseLine(bytes.TrimSuffix(line, []byte{'\n'})); err == nil && of.Include(r.Tenant) && !f(r) {
				return nil
			}
		}
		next = m.Sequence + 1
	}
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	return unreadable(err)
}

// parseCursor decodes the sequence of a message and the number of its records that were read.
func parseCursor(cursor string) (sequence uint64, skip int, err error) {
	if cursor == "" {
		return 1, 0, nil
	}
	left, right, _ := strings.Cut(cursor, "-")
	sequence, err = strconv.ParseUint(left, 10, 64)
	if err == nil {
		skip, err = strconv.Atoi(right)
	}
	if err != nil || skip < 0 {
		return 0, 0, schema.Errorf(schema.KindInvalidRequest, "This cursor is invalid; start again without a cursor.")
	}
	return sequence, skip, nil
}
