package bus

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// StreamSpec specifies a stream. It is used only to create the stream. An existing stream is left
// unchanged, because an operator may have configured it.
type StreamSpec struct {
	// Name and Subjects are names in this package. What describes the content for people.
	Name, What string
	Subjects   []string
	// Logs keeps all messages of a subject. Otherwise only the last one is kept.
	Logs bool
	// MaxAge is the time for which a message is kept after it was stored. 0 means forever.
	MaxAge time.Duration
	// MaxBytes limits the size of the stream. 0 means no limit. MinBytes, if set, is the
	// smallest limit to try if the server has no space for MaxBytes.
	MaxBytes, MinBytes int64
	// DropsOldest replaces the oldest messages with new ones. Otherwise a full stream refuses
	// writes, so that no message is dropped that must be kept.
	DropsOldest bool
	// DenyDelete forbids removing single messages. DenyPurge forbids purging.
	DenyDelete, DenyPurge bool
	// Compress compresses stored messages.
	Compress bool
	// Expires permits a [Message.TTL] for single messages. MarkerTTL is the lifetime of the
	// marker that an expired message leaves, so that watches notice it. 0 means no marker.
	Expires   bool
	MarkerTTL time.Duration
	// Ranges permits reading many messages at once ([Stream.Read]). This requires direct
	// access, so opening a stream without it fails.
	Ranges bool
	// Probe is a subject of the stream without readers. If writes fail, probes on it detect
	// that they succeed again. If empty, failing writes are not tracked.
	Probe string
}

func (s StreamSpec) config(replicas int) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name: s.Name, Description: s.What, Subjects: s.Subjects, Storage: jetstream.FileStorage, Replicas: replicas, MaxAge: s.MaxAge,
		MaxMsgsPerSubject: 1, MaxBytes: -1, Discard: jetstream.DiscardNew, AllowDirect: true, DenyDelete: s.DenyDelete, DenyPurge: s.DenyPurge,
		AllowMsgTTL: s.Expires, SubjectDeleteMarkerTTL: s.MarkerTTL, AllowRollup: s.MarkerTTL > 0,
	}
	if s.Logs {
		c.MaxMsgsPerSubject = -1
	}
	if s.MaxBytes > 0 {
		c.MaxBytes = s.MaxBytes
	}
	if s.DropsOldest {
		c.Discard = jetstream.DiscardOld
	}
	if s.Compress {
		c.Compression = jetstream.S2Compression
	}
	return c
}

// Stream is a JetStream stream, on which stores are built (internal/store). It handles subjects,
// bytes and sequence numbers. All methods are safe for concurrent use.
type Stream struct {
	c    *Conn
	s    jetstream.Stream
	spec StreamSpec
}

// Message is a message that is stored or is to be stored.
type Message struct {
	Subject string
	// Sequence orders the messages of a stream. Stored is the time when the message was
	// stored. The stream sets both.
	Sequence uint64
	Stored   time.Time
	// Record is the part of a message that [Stream.WatchRecords] returns without Data. It is
	// sent in a header, in base64, so that its content cannot be mistaken for a NATS header.
	Record []byte
	Data   []byte
	// TTL is the time after which the stored message expires, in whole seconds and at least
	// one. 0 means never. It is not set on messages that are read.
	TTL time.Duration
}

// Source selects the server of a cluster from which a message is read.
type Source int

const (
	// Replica is any server that has the stream. It may lag behind.
	Replica Source = iota
	// Leader has every acknowledged write.
	Leader
	// Either is a replica or, if it does not have the message, the leader.
	Either
)

// The errors of a read or write of a durable record. After any other error it is unknown whether
// the write happened.
var (
	// ErrConflict: another writer was first, and nothing was written.
	ErrConflict = errors.New("another writer changed the record first")
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("the record does not exist")
	// ErrRefused: JetStream refused the write, usually for lack of space.
	ErrRefused = errors.New("JetStream refused the write")
	// ErrNotConnected: there is no connection to NATS, and nothing was sent.
	ErrNotConnected = errors.New("there is no connection to NATS")
	// ErrTooLarge: the message exceeds the size limit of the server.
	ErrTooLarge = errors.New("the message exceeds the size limit of the NATS server")
)

// recordEncoding is the encoding of [Message.Record].
var recordEncoding = base64.RawStdEncoding

// RecordSize returns the encoded size of a [Message.Record] of n bytes.
func RecordSize(n int) int { return recordEncoding.EncodedLen(n) }

// OpenStream opens a stream. If it does not exist and the connection is allowed to create it,
// OpenStream creates it; see [Provision].
func OpenStream(ctx context.Context, c *Conn, spec StreamSpec) (*Stream, error) {
	want := spec.config(c.replicas)
	s, err := openStream(ctx, c, want)
	for spec.MinBytes > 0 && noSpace(err) && want.MaxBytes/2 >= spec.MinBytes {
		// A server reserves the maximum size of a stream. A small disk must not prevent the start.
		want.MaxBytes /= 2
		if s, err = openStream(ctx, c, want); err == nil {
			c.log.Warn("the NATS server is low on disk space: the size limit of a stream is smaller than required", "stream", spec.Name, "of", spec.What, "bytes", want.MaxBytes, "wanted", spec.MaxBytes)
		}
	}
	if err != nil {
		return nil, err
	}
	if spec.Ranges && !s.CachedInfo().Config.AllowDirect {
		return nil, fmt.Errorf("the stream %s does not allow direct reads: change it with nats stream edit --allow-direct", spec.Name)
	}
	return &Stream{c, s, spec}, nil
}

// FindStream opens an existing stream for reading. It returns [ErrNotFound] if there is none.
func FindStream(ctx context.Context, c *Conn, spec StreamSpec) (*Stream, error) {
	s, err := c.js.Stream(ctx, spec.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, opening(err, "stream", spec.What)
	}
	return &Stream{c, s, spec}, nil
}

// MaxAge returns the time for which the stream keeps a message, as of its opening. 0 means
// forever.
func (s *Stream) MaxAge() time.Duration { return s.s.CachedInfo().Config.MaxAge }

// MaxMessage returns the maximum total size of the data, subject and headers of a message, in
// bytes.
func (s *Stream) MaxMessage() int { return s.c.MaxPayload() }

// Put stores a message, waits until it is stored, and returns its sequence.
func (s *Stream) Put(ctx context.Context, m Message) (uint64, error) { return s.store(ctx, m) }

// PutAfter stores a message if the last message of its subject has the sequence last. If last is
// 0, there must be none. It returns the new sequence. It returns [ErrConflict] if the last message
// is another one, and [ErrRefused] if nothing was stored. After any other error it is unknown
// whether the message was stored.
func (s *Stream) PutAfter(ctx context.Context, m Message, last uint64) (uint64, error) {
	return s.store(ctx, m, jetstream.WithExpectLastSequencePerSubject(last))
}

func (s *Stream) store(ctx context.Context, m Message, opts ...jetstream.PublishOpt) (uint64, error) {
	msg := &nats.Msg{Subject: m.Subject, Data: m.Data}
	if len(m.Record) > 0 {
		msg.Header = nats.Header{headerRecord: {recordEncoding.EncodeToString(m.Record)}}
	}
	if m.TTL > 0 { // the server counts whole seconds, and the minimum is one
		opts = append(opts, jetstream.WithMsgTTL(max(m.TTL.Truncate(time.Second), time.Second)))
	}
	begun := time.Now()
	ack, err := s.c.js.PublishMsg(ctx, msg, opts...)
	s.c.writes.wrote(&s.spec, begun, err)
	if errors.Is(err, nats.ErrMaxPayload) {
		return 0, ErrTooLarge
	}
	if err != nil {
		return 0, refusal(err)
	}
	return ack.Sequence, nil
}

// codeWrongLast and codeWrongLastPlain are JetStream's error codes for an unexpected last sequence:
// from a single server, and from a batch or a leader.
const (
	codeWrongLast      jetstream.ErrorCode = 10071
	codeWrongLastPlain jetstream.ErrorCode = 10164
)

// refusal converts the error of a write.
func refusal(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.As(err, &api) && (api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastPlain):
		return ErrConflict
	case api != nil:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("storing the record: %w", explained(err))
}

// explained replaces the error of nats.go for a missing connection, which speaks of a buffer.
func explained(err error) error {
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return ErrNotConnected
	}
	return err
}

// Writable returns [ErrNotStoring] while writes to the stream fail.
func (s *Stream) Writable() error { return s.c.writes.writable(s.spec.Name) }

// Purge removes the messages of a subject, which may have wildcards. If before is set, it removes
// only messages with a smaller sequence.
func (s *Stream) Purge(ctx context.Context, subject string, before uint64) error {
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject)}
	if before > 0 {
		opts = append(opts, jetstream.WithPurgeSequence(before))
	}
	if err := s.s.Purge(ctx, opts...); err != nil {
		return fmt.Errorf("purging the stream of %s: %w", s.spec.What, err)
	}
	return nil
}

// Erase removes one message and makes the server overwrite its bytes. After Purge or a later
// message of the subject, they would remain in the files of the server until it compacts them. A
// server that encrypts its files only removes the message. It is not an error if the message does
// not exist.
func (s *Stream) Erase(ctx context.Context, sequence uint64) error {
	err := s.s.SecureDeleteMsg(ctx, sequence)
	if err == nil {
		return nil
	}
	if _, gone := s.c.leader(ctx, s.spec.Name, map[string]any{"seq": sequence}); errors.Is(gone, ErrNotFound) {
		return nil
	}
	return fmt.Errorf("erasing a message of the stream of %s: %w", s.spec.What, err)
}

// Subjects returns the subjects that match the filter and have messages, unordered.
func (s *Stream) Subjects(ctx context.Context, filter string) ([]string, error) {
	info, err := s.s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("reading the state of the stream of %s: %w", s.spec.What, explained(err))
	}
	all := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		all = append(all, subject)
	}
	return all, nil
}

// StreamState holds the size of a stream and the sequences of its first and last message. MaxBytes
// is -1 if there is no limit. Created is the time when the stream was created, and Oldest the time
// when its first message was stored.
type StreamState struct {
	Bytes, MaxBytes int64
	First, Last     uint64
	Created, Oldest time.Time
}

// State reads the state of the stream.
func (s *Stream) State(ctx context.Context) (StreamState, error) {
	info, err := s.s.Info(ctx)
	if err != nil {
		return StreamState{}, fmt.Errorf("reading the state of the stream of %s: %w", s.spec.What, explained(err))
	}
	return StreamState{int64(min(info.State.Bytes, 1<<62)), info.Config.MaxBytes, info.State.FirstSeq, info.State.LastSeq, info.Created, info.State.FirstTime}, nil
}

// Watch calls f for each kept message of the subject, and then for each new one, in order, on one
// goroutine. It returns when f has been called for all messages that existed, or when ctx ends;
// see [WithPatience].
// The removal of a message is not reported.
func (s *Stream) Watch(ctx context.Context, subject string, f func(Message)) (*StreamWatch, error) {
	return s.c.watch(ctx, s.spec.What, s.spec.Name, subject, func(m *nats.Msg, sequence uint64, _ bool) { f(watched(m, sequence)) }, beginAll, false, nil)
}

// WatchRecords is Watch without Data.
func (s *Stream) WatchRecords(ctx context.Context, subject string, f func(Message)) (*StreamWatch, error) {
	return s.c.watch(ctx, s.spec.What, s.spec.Name, subject, func(m *nats.Msg, sequence uint64, _ bool) { f(watched(m, sequence)) }, beginAll, true, nil)
}

// Scan calls f for each kept message of the subject, like [Stream.Watch], and returns. It may
// include messages that are stored in the meantime.
func (s *Stream) Scan(ctx context.Context, subject string, f func(Message)) error {
	w, err := s.c.watch(ctx, s.spec.What, s.spec.Name, subject, func(m *nats.Msg, sequence uint64, live bool) {
		if !live {
			f(watched(m, sequence))
		}
	}, beginAll, false, nil)
	if err != nil {
		return err
	}
	w.Close()
	return nil
}

func watched(m *nats.Msg, sequence uint64) Message {
	return message(m.Subject, sequence, m.Header, m.Data, time.Time{})
}

// Notify notifies listeners of the subject, which is not a subject of the stream, that a message with
// the sequence was stored. It is only a hint and can be lost.
func (s *Stream) Notify(subject string, sequence uint64) {
	_ = s.c.nc.Publish(subject, binary.BigEndian.AppendUint64(nil, sequence))
}

// Listen calls f with each sequence that [Stream.Notify] sends on the subject, on one goroutine, until
// stop is called.
func (s *Stream) Listen(subject string, f func(sequence uint64)) (stop func(), err error) {
	done := make(chan struct{})
	sub, err := s.c.subscribe(subject, "", func(m *nats.Msg) {
		if len(m.Data) == 8 {
			f(binary.BigEndian.Uint64(m.Data))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listening for writes to the stream of %s: %w", s.spec.What, err)
	}
	sub.SetClosedHandler(func(string) { close(done) })
	return func() {
		_ = sub.Unsubscribe() // it fails only when the connection is closed, which ends it too
		<-done
	}, nil
}
