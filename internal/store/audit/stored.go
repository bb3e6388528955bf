package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Streams are the streams of the audit record; maxAge is as in [Options].
func Streams(maxAge time.Duration) []bus.StreamSpec {
	return []bus.StreamSpec{{
		Name: bus.StreamAudit, What: "audit records", Subjects: []string{bus.SubjectAudit + "*"},
		Logs: true, MaxAge: maxAge, Compress: true, DenyDelete: true, DenyPurge: true,
	}}
}

// Tables are the tables of the audit record.
func Tables() []bus.TableSpec {
	return []bus.TableSpec{{Bucket: bus.BucketAuditHeads, What: "heads of the audit chains"}}
}

// store is the stored lines of all writers, and heads say how far each chain has come.
// It knows writers, bytes and sequence numbers. All methods are safe for concurrent use.
type store struct {
	s     *bus.Stream
	heads *bus.Bucket
}

// message is one stored message: the lines that one writer stored at once.
type message struct {
	// Writer is the token of the writer in the subject.
	Writer   string
	Sequence uint64
	Stored   time.Time
	Data     []byte
}

// openStore opens the stream and the table, with open and heads as [bus.OpenStream] and
// [bus.OpenBucket] or as those that make nothing.
func openStore(ctx context.Context, c *bus.Conn, maxAge time.Duration,
	open func(context.Context, *bus.Conn, bus.StreamSpec) (*bus.Stream, error), heads func(context.Context, *bus.Conn, bus.TableSpec) (*bus.Bucket, error),
) (*store, error) {
	s, err := open(ctx, c, Streams(maxAge)[0])
	if err != nil {
		return nil, err
	}
	b, err := heads(ctx, c, Tables()[0])
	if err != nil {
		return nil, err
	}
	return &store{s, b}, nil
}

// append stores the lines of a writer when its last message has the sequence last; see
// [bus.Stream.PutAfter].
func (t *store) append(ctx context.Context, writer string, data []byte, last uint64) (uint64, error) {
	return t.s.PutAfter(ctx, bus.Message{Subject: bus.SubjectAudit + bus.Token(writer), Data: data}, last)
}

// last reads the last message of a writer from the stream's leader.
func (t *store) last(ctx context.Context, writer string) (message, error) {
	m, err := t.s.Last(ctx, bus.SubjectAudit+bus.Token(writer), bus.Leader)
	return messageOf(m), err
}

// next reads the first message with at least the given sequence; [bus.ErrNotFound] means
// that there is none.
func (t *store) next(ctx context.Context, sequence uint64) (message, error) {
	m, err := t.s.Next(ctx, bus.SubjectAudit+"*", sequence, bus.Replica)
	return messageOf(m), err
}

func messageOf(m bus.Message) message {
	return message{Writer: bus.LastToken(m.Subject), Sequence: m.Sequence, Stored: m.Stored, Data: m.Data}
}

// since returns the sequence of the first message that was stored at that time or after
// it, or the one after the last.
func (t *store) since(ctx context.Context, at time.Time) (uint64, error) {
	state, err := t.s.State(ctx)
	if err != nil {
		return 0, err
	}
	// Of [low, high) the first that is not before t is sought; what is missing in
	// between stands for the next one that is there.
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

// putHead keeps how far the chain of a writer has come.
func (t *store) putHead(ctx context.Context, writer string, head []byte) error {
	if _, err := t.heads.Put(ctx, bus.Token(writer), head); err != nil {
		return fmt.Errorf("storing the head of the audit chain: %w", err)
	}
	return nil
}
