package bus

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// LedgerOptions say how long the ledger is kept. They count when the stream is
// made; one that exists is left as it is.
type LedgerOptions struct {
	// MaxAge is how long a record is kept after it was last written.
	MaxAge time.Duration
	// MaxBytes bounds the stream; a full one refuses writes. 0 means no bound.
	MaxBytes int64
}

// Ledger is the stream of durable records. It knows ids, bytes and sequence
// numbers; what a record means is decided in internal/ledger.
//
// A record is opened once, with its bytes beside it, and then replaced by
// compare-and-set. All methods are safe for concurrent use.
type Ledger struct {
	c            *Conn
	stream, held jetstream.Stream
}

// LedgerRecord is a record as it was stored.
type LedgerRecord struct {
	// ID is empty in a record whose id is no plain token.
	ID string
	// Head is the record, Body the bytes that were stored with this write of it.
	Head, Body []byte
	// Revision is what the next [Ledger.Replace] must name: 0 for a record that
	// was opened and never replaced.
	Revision uint64
	// Sequence orders the writes of all records.
	Sequence uint64
}

func ledgerStream(o LedgerOptions, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: streamLedger, Description: "approvals and what they hold",
		Subjects: []string{subjectApproval + "*.*", subjectPart + "*.*.*.*"},
		Storage:  jetstream.FileStorage, Replicas: replicas, MaxMsgsPerSubject: 1, MaxAge: o.MaxAge, MaxBytes: bound(o.MaxBytes),
		// A full ledger refuses: it never drops what it promised to keep.
		Discard: jetstream.DiscardNew, AllowDirect: true, DenyDelete: true,
	}
}

// bound is a limit of JetStream, where -1 sets none.
func bound(bytes int64) int64 {
	if bytes > 0 {
		return bytes
	}
	return -1
}

// OpenLedger opens the ledger.
func OpenLedger(ctx context.Context, c *Conn, o LedgerOptions) (*Ledger, error) {
	s, err := openStream(ctx, c, ledgerStream(o, c.replicas))
	if err != nil {
		return nil, err
	}
	held, err := openStream(ctx, c, heldStream(o, c.replicas))
	if err != nil {
		return nil, err
	}
	return &Ledger{c, s, held}, nil
}

// MaxBody is how many bytes of head, once in base64, and body fit in one record.
func (l *Ledger) MaxBody() int { return l.c.MaxPayload() - 2<<10 }

// HeadSize is what a head of n bytes takes of [Ledger.MaxBody].
func HeadSize(n int) int { return base64.RawStdEncoding.EncodedLen(n) }

// Create opens a record: the first writer wins, [ErrConflict] is for all others.
// It returns the sequence of the write.
func (l *Ledger) Create(ctx context.Context, id string, head, body []byte) (uint64, error) {
	if err := l.c.writable(streamLedger); err != nil {
		return 0, err
	}
	m := recordMessage(subjectApproval+token(id)+tokenOpen, head)
	m.Data = body
	return l.c.publishAfter(ctx, m, 0)
}

// Replace writes a record, with bytes beside it, when its revision is still the
// given one. It returns the new revision, which is the sequence of the write too.
// The bytes of an earlier replacement are gone with it; those of the opening stay.
func (l *Ledger) Replace(ctx context.Context, id string, head, body []byte, revision uint64) (uint64, error) {
	if err := l.c.writable(streamLedger); err != nil {
		return 0, err
	}
	m := recordMessage(subjectApproval+token(id)+tokenState, head)
	m.Data = body
	return l.c.publishAfter(ctx, m, revision)
}

func recordMessage(subject string, head []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{headerRecord: {base64.RawStdEncoding.EncodeToString(head)}}}
}

// Get reads a record as it stands. Where a replica answers it can be behind;
// with fresh set the stream's leader is asked.
func (l *Ledger) Get(ctx context.Context, id string, fresh bool) (LedgerRecord, error) {
	read := func(subject string) (message, error) {
		if fresh {
			return l.c.leader(ctx, streamLedger, subject)
		}
		return direct(ctx, l.stream, subject)
	}
	m, err := read(subjectApproval + token(id) + tokenState)
	if errors.Is(err, ErrNotFound) {
		m, err = read(subjectApproval + token(id) + tokenOpen)
		if errors.Is(err, ErrNotFound) && !fresh {
			return l.Get(ctx, id, true)
		}
	}
	if err != nil {
		return LedgerRecord{}, err
	}
	r, err := recordOf(m)
	r.ID = id
	return r, err
}

// Opening reads a record as it was opened, with its bytes.
func (l *Ledger) Opening(ctx context.Context, id string) (LedgerRecord, error) {
	m, err := direct(ctx, l.stream, subjectApproval+token(id)+tokenOpen)
	if errors.Is(err, ErrNotFound) {
		m, err = l.c.leader(ctx, streamLedger, subjectApproval+token(id)+tokenOpen)
	}
	if err != nil {
		return LedgerRecord{}, err
	}
	r, err := recordOf(m)
	r.ID = id
	return r, err
}

func recordOf(m message) (LedgerRecord, error) {
	head, err := base64.RawStdEncoding.DecodeString(m.header.Get(headerRecord))
	if err != nil || len(head) == 0 {
		return LedgerRecord{}, fmt.Errorf("the record at sequence %d of %s cannot be read", m.sequence, streamLedger)
	}
	r := LedgerRecord{Head: head, Body: m.data, Sequence: m.sequence}
	id, isState := strings.CutSuffix(strings.TrimPrefix(m.subject, subjectApproval), tokenState)
	if isState {
		r.Revision = m.sequence
	}
	if id = strings.TrimSuffix(id, tokenOpen); plainToken(id) {
		r.ID = id
	}
	return r, nil
}

// PartPlace says where parts of a record lie.
type PartPlace int

const (
	// PartKept is the ledger itself: as long as the record.
	PartKept PartPlace = iota
	// PartHeld is beside it: until [Ledger.PurgeHeld].
	PartHeld
)

// PutPart stores part n of some bytes of a record. kind and name are plain
// tokens. Storing the same part again changes nothing.
func (l *Ledger) PutPart(ctx context.Context, at PartPlace, id, kind, name string, n int, data []byte) error {
	stream := streamLedger
	if at == PartHeld {
		stream = streamHeld
	}
	if err := l.c.writable(stream); err != nil {
		return err
	}
	_, err := l.c.store(ctx, &nats.Msg{Subject: partSubject(at, id, kind, name, n), Data: data})
	return err
}

// Part reads what [Ledger.PutPart] stored.
func (l *Ledger) Part(ctx context.Context, at PartPlace, id, kind, name string, n int) ([]byte, error) {
	stream, stored := l.stream, streamLedger
	if at == PartHeld {
		stream, stored = l.held, streamHeld
	}
	m, err := direct(ctx, stream, partSubject(at, id, kind, name, n))
	if errors.Is(err, ErrNotFound) {
		m, err = l.c.leader(ctx, stored, partSubject(at, id, kind, name, n))
	}
	return m.data, err
}

func partSubject(at PartPlace, id, kind, name string, n int) string {
	subject := subjectPart
	if at == PartHeld {
		subject = subjectHeld
	}
	return subject + token(id) + "." + token(kind) + "." + token(name) + "." + strconv.Itoa(n)
}

// Watch calls f for every record that is kept, in the order of the last write,
// and then for each write, on one goroutine; Body is left out. It returns once
// everything that was there has been seen, or ctx has ended.
func (l *Ledger) Watch(ctx context.Context, f func(LedgerRecord)) (*StreamWatch, error) {
	return l.c.watch(ctx, "the ledger", streamLedger, subjectApproval+"*.*", func(m *nats.Msg, sequence uint64, _ bool) {
		r, err := recordOf(message{subject: m.Subject, sequence: sequence, header: m.Header})
		if err != nil || r.ID == "" {
			l.c.log.Error("a record of the ledger cannot be read; it is left out", "subject", m.Subject, "sequence", sequence)
			return
		}
		f(r)
	}, beginAll, true)
}
