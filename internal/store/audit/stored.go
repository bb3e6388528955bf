package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Streams returns the specs of the audit streams. Records are kept until an operator sets an age.
func Streams() []bus.StreamSpec {
	return []bus.StreamSpec{{
		Name: bus.StreamAudit, What: "audit records", Subjects: []string{bus.SubjectAudit + "*"},
		Logs: true, Compress: true, DenyDelete: true, DenyPurge: true,
	}}
}

// Tables returns the specs of the audit tables.
func Tables() []bus.TableSpec {
	return []bus.TableSpec{{Bucket: bus.BucketAuditHeads, What: "heads of the audit chains"}}
}

// store reads and writes the lines of all writers, and the heads of their chains. It knows only writers,
// bytes and sequence numbers. It is safe for concurrent use.
type store struct {
	s     *bus.Stream
	heads *bus.Bucket
}

// message is one stored message: the lines that one writer stored together.
type message struct {
	// Writer is the token of the writer in the subject.
	Writer   string
	Sequence uint64
	Stored   time.Time
	Data     []byte
}

// openStore opens the stream and the table. open and heads are [bus.OpenStream] and [bus.OpenBucket], or
// variants that create nothing.
func openStore(ctx context.Context, c *bus.Conn,
	open func(context.Context, *bus.Conn, bus.StreamSpec) (*bus.Stream, error), heads func(context.Context, *bus.Conn, bus.TableSpec) (*bus.Bucket, error),
) (*store, error) {
	s, err := open(ctx, c, Streams()[0])
	if err != nil {
		return nil, err
	}
	b, err := heads(ctx, c, Tables()[0])
	if err != nil {
		return nil, err
	}
	return &store{s, b}, nil
}

// append stores the lines of a writer if its last message has the sequence last; see
// [bus.Stream.PutAfter].
func (t *store) append(ctx context.Context, writer string, data []byte, last uint64) (uint64, error) {
	return t.s.PutAfter(ctx, bus.Message{Subject: bus.SubjectAudit + bus.Token(writer), Data: data}, last)
}

// last reads the last message of a writer from the stream's leader.
func (t *store) last(ctx context.Context, writer string) (message, error) {
	m, err := t.s.Last(ctx, bus.SubjectAudit+bus.Token(writer), bus.Leader)
	return messageOf(m), err
}

// next reads the first message with at least the given sequence. [bus.ErrNotFound] means that there is
// none: the leader confirms it, because a replica that lags would make the end of the record look removed.
func (t *store) next(ctx context.Context, sequence uint64) (message, error) {
	m, err := t.s.Next(ctx, bus.SubjectAudit+"*", sequence, bus.Replica)
	if errors.Is(err, bus.ErrNotFound) {
		m, err = t.s.Next(ctx, bus.SubjectAudit+"*", sequence, bus.Leader)
	}
	return messageOf(m), err
}

func messageOf(m bus.Message) message {
	return message{Writer: bus.LastToken(m.Subject), Sequence: m.Sequence, Stored: m.Stored, Data: m.Data}
}

// since returns the sequence of the first message stored at or after that time, or the one after the
// last.
func (t *store) since(ctx context.Context, at time.Time) (uint64, error) {
	state, err := t.s.State(ctx)
	if err != nil {
		return 0, err
	}
	// Binary search in [low, high) for the first message not before t. A missing message counts as the
	// next existing one.
	low, high := state.First, state.Last+1
	for low < high {
		middle := low + (high-low)/2
		m, err := t.next(ctx, middle)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			high = middle
		case err != nil:
			return 0, err
		case m.Stored.Before(at):
			low = m.Sequence + 1
		default:
			high = middle
		}
	}
	return low, nil
}

// putHead stores the head of a writer's chain.
func (t *store) putHead(ctx context.Context, writer string, head []byte) error {
	if _, err := t.heads.Put(ctx, bus.Token(writer), head); err != nil {
		return fmt.Errorf("storing the head of the audit chain: %w", err)
	}
	return nil
}
