package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Audit is the stream of audit lines and the table of heads beside it. It knows
// writers, bytes and sequence numbers; the chain is made and checked in
// internal/audit. All methods are safe for concurrent use.
type Audit struct {
	c      *Conn
	stream jetstream.Stream
	heads  jetstream.KeyValue
}

// AuditMessage is one stored message: the lines that one writer stored at once.
type AuditMessage struct {
	// Writer is the token of the writer in the subject.
	Writer   string
	Sequence uint64
	Stored   time.Time
	Data     []byte
}

func auditStream(maxAge time.Duration, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: streamAudit, Description: "audit records", Subjects: []string{subjectAudit + "*"},
		Storage: jetstream.FileStorage, Replicas: replicas, MaxMsgsPerSubject: -1, MaxAge: maxAge, Compression: jetstream.S2Compression,
		Discard: jetstream.DiscardNew, DenyDelete: true, DenyPurge: true, AllowDirect: true,
	}
}

var headsTable = jetstream.KeyValueConfig{Bucket: bucketHeads, Description: "heads of the audit chains", History: 1}

// OpenAudit opens the audit stream. maxAge counts when the stream is made; 0
// keeps everything.
func OpenAudit(ctx context.Context, c *Conn, maxAge time.Duration) (*Audit, error) {
	s, err := openStream(ctx, c, auditStream(maxAge, c.replicas))
	if err != nil {
		return nil, err
	}
	kv, err := openBucket(ctx, c, headsTable)
	if err != nil {
		return nil, err
	}
	return &Audit{c, s, kv}, nil
}

// ReadAudit opens an audit stream that is there, to read it; [ErrNotFound] means
// that there is none.
func ReadAudit(ctx context.Context, c *Conn) (*Audit, error) {
	s, err := c.js.Stream(ctx, streamAudit)
	var kv jetstream.KeyValue
	if err == nil {
		kv, err = c.js.KeyValue(ctx, bucketHeads)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("opening the audit record: %w", err)
	}
	return &Audit{c, s, kv}, nil
}

// MaxAge is how long the stream keeps a record; 0 means for ever.
func (a *Audit) MaxAge() time.Duration { return a.stream.CachedInfo().Config.MaxAge }

// AuditWriter is the token by which messages and heads name a writer.
func AuditWriter(writer string) string { return token(writer) }

// Append stores the lines of a writer when its last message has the sequence
// last; 0 means that there must be none. It returns the new sequence;
// [ErrConflict] means that the last one is another.
func (a *Audit) Append(ctx context.Context, writer string, data []byte, last uint64) (uint64, error) {
	return a.c.publishAfter(ctx, &nats.Msg{Subject: subjectAudit + token(writer), Data: data}, last)
}

// Last reads the last message of a writer from the stream's leader.
func (a *Audit) Last(ctx context.Context, writer string) (AuditMessage, error) {
	m, err := a.c.leader(ctx, streamAudit, subjectAudit+token(writer))
	return auditMessage(m), err
}

// Next reads the first message with at least the given sequence; [ErrNotFound]
// means that there is none.
func (a *Audit) Next(ctx context.Context, sequence uint64) (AuditMessage, error) {
	raw, err := a.stream.GetMsg(ctx, max(sequence, 1), jetstream.WithGetMsgSubject(subjectAudit+"*"))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return AuditMessage{}, ErrNotFound
	}
	if err != nil {
		return AuditMessage{}, fmt.Errorf("reading the audit stream: %w", err)
	}
	return auditMessage(message{raw.Subject, raw.Sequence, raw.Header, raw.Data, raw.Time}), nil
}

// Since returns the sequence of the first message that was stored at that time or
// after it, or the one after the last.
func (a *Audit) Since(ctx context.Context, t time.Time) (uint64, error) {
	info, err := a.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the state of the audit stream: %w", err)
	}
	// Of [low, high) the first that is not before t is sought; what is missing in
	// between stands for the next one that is there.
	low, high := info.State.FirstSeq, info.State.LastSeq+1
	for low < high {
		middle := low + (high-low)/2
		m, err := a.Next(ctx, middle)
		switch {
		case errors.Is(err, ErrNotFound):
			high = middle
		case err != nil:
			return 0, err
		case m.Stored.Before(t):
			low = m.Sequence + 1
		default:
			high = middle
		}
	}
	return low, nil
}

func auditMessage(m message) AuditMessage {
	return AuditMessage{Writer: lastToken(m.subject), Sequence: m.sequence, Stored: m.stored, Data: m.data}
}

// PutHead keeps how far the chain of a writer has come.
func (a *Audit) PutHead(ctx context.Context, writer string, head []byte) error {
	if _, err := a.heads.Put(ctx, token(writer), head); err != nil {
		return fmt.Errorf("storing the head of the audit chain: %w", err)
	}
	return nil
}

// Heads reads every head, by the token of its writer.
func (a *Audit) Heads(ctx context.Context) (map[string][]byte, error) {
	lister, err := a.heads.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the heads of the audit chains: %w", err)
	}
	heads := map[string][]byte{}
	for key := range lister.Keys() {
		e, err := a.heads.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a head of an audit chain: %w", err)
		}
		heads[key] = e.Value()
	}
	return heads, nil
}
