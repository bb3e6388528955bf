package bus

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// StreamSpec says what a stream keeps. It counts when the stream is made: one that is
// there stays as an operator may have set it.
type StreamSpec struct {
	// Name and Subjects are names of this package, What says for people what is stored.
	Name, What string
	Subjects   []string
	// Logs: all messages of a subject are kept, else the last one alone.
	Logs bool
	// MaxAge is how long a message is kept after it was stored; 0: for ever.
	MaxAge time.Duration
	// MaxBytes bounds the stream; 0: there is no bound. MinBytes, when set, is the
	// least bound that is tried where the server has no space for MaxBytes.
	MaxBytes, MinBytes int64
	// DropsOldest: new messages replace the oldest ones. Otherwise a full stream refuses
	// writes: it never drops a message that it promised to keep.
	DropsOldest bool
	// DenyDelete and DenyPurge: single messages cannot be removed, or none at all.
	DenyDelete, DenyPurge bool
	// Compress: what is stored is compressed.
	Compress bool
	// Expires: single messages may have a [Message].TTL. MarkerTTL is how long the mark
	// stays that a message leaves which grew too old, so that watches hear of it; 0: it
	// leaves none.
	Expires   bool
	MarkerTTL time.Duration
	// Ranges: many messages are read at once ([Stream.Read]), which takes direct access;
	// a stream that does not allow it is refused.
	Ranges bool
	// Probe is a subject of the stream that nobody reads, on which it is tried whether
	// writes succeed again; empty: failing writes are not noted.
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

// Stream is a stream of JetStream, on which stores are built (internal/store). It knows
// subjects, bytes and sequence numbers. All methods are safe for concurrent use.
type Stream struct {
	c    *Conn
	s    jetstream.Stream
	spec StreamSpec
}

// Message is a stored message, or one that is to be stored.
type Message struct {
	Subject string
	// Sequence orders the messages of a stream, and Stored is when it was stored; both
	// are set by it.
	Sequence uint64
	Stored   time.Time
	// Record is what [Stream.WatchRecords] tells of a message without its Data: it
	// travels in a header, in base64, so that nothing in it can be taken for one of NATS.
	Record []byte
	Data   []byte
	// TTL is when the message is forgotten by itself, after it was stored: in whole
	// seconds, and one at least; 0: it is not. It is not read back.
	TTL time.Duration
}

// Source says which server of a cluster is asked for a message.
type Source int

const (
	// Replica is any that has the stream: it may be behind.
	Replica Source = iota
	// Leader has every write that was acknowledged.
	Leader
	// Either is a replica, and the leader where that has none.
	Either
)

// What can become of a read or write of a durable record, besides success. Anything else
// means that nobody knows whether the write happened.
var (
	// ErrConflict: another writer was first; nothing was written.
	ErrConflict = errors.New("another writer changed the record first")
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("the record does not exist")
	// ErrRefused: JetStream refused the write, for want of space most often.
	ErrRefused = errors.New("JetStream refused the write")
	// ErrTooLarge: the message is larger than the server takes.
	ErrTooLarge = errors.New("the message exceeds the size limit of the NATS server")
)

// recordEncoding is that of [Message.Record].
var recordEncoding = base64.RawStdEncoding

// RecordSize is what a [Message.Record] of n bytes takes of a message.
func RecordSize(n int) int { return recordEncoding.EncodedLen(n) }

// OpenStream opens a stream, and makes it when it is missing and the connection may; see
// [Provision].
func OpenStream(ctx context.Context, c *Conn, spec StreamSpec) (*Stream, error) {
	want := spec.config(c.replicas)
	s, err := openStream(ctx, c, want)
	for spec.MinBytes > 0 && noSpace(err) && want.MaxBytes/2 >= spec.MinBytes {
		// A server sets aside what a stream may take. A small disk is no reason not to start.
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

// FindStream opens a stream that is there, to read it; [ErrNotFound] means that there is
// none.
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

// MaxAge is how long the stream keeps a message, as of its opening; 0 means for ever.
func (s *Stream) MaxAge() time.Duration { return s.s.CachedInfo().Config.MaxAge }

// MaxMessage is how many bytes the data, subject and headers of a message may take together.
func (s *Stream) MaxMessage() int { return s.c.MaxPayload() }

// Put stores a message and waits until it is stored. It returns its sequence.
func (s *Stream) Put(ctx context.Context, m Message) (uint64, error) { return s.store(ctx, m) }

// PutAfter stores a message when the last one of its subject has the sequence last; 0
// means that there must be none. It returns the new sequence. [ErrConflict] means that
// the last one is another, [ErrRefused] that nothing was stored, and any other error that
// nobody knows.
func (s *Stream) PutAfter(ctx context.Context, m Message, last uint64) (uint64, error) {
	return s.store(ctx, m, jetstream.WithExpectLastSequencePerSubject(last))
}

func (s *Stream) store(ctx context.Context, m Message, opts ...jetstream.PublishOpt) (uint64, error) {
	msg := &nats.Msg{Subject: m.Subject, Data: m.Data}
	if len(m.Record) > 0 {
		msg.Header = nats.Header{headerRecord: {recordEncoding.EncodeToString(m.Record)}}
	}
	if m.TTL > 0 { // the server counts whole seconds and takes no less than one
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

// codeWrongLast and codeWrongLastPlain are JetStream's for a sequence that is not the
// expected one, on a single server and where a batch or a leader decides.
const (
	codeWrongLast      jetstream.ErrorCode = 10071
	codeWrongLastPlain jetstream.ErrorCode = 10164
)

// refusal says what an error of a write means.
func refusal(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.As(err, &api) && (api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastPlain):
		return ErrConflict
	case api != nil:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("storing the record: %w", err)
}

// Writable returns an [ErrNotStoring] while writes to the stream fail.
func (s *Stream) Writable() error { return s.c.writes.writable(s.spec.Name) }

// Last reads the last message of a subject; [ErrNotFound] means that there is none.
func (s *Stream) Last(ctx context.Context, subject string, from Source) (Message, error) {
	m, err := Message{}, ErrNotFound
	if from != Leader {
		m, err = s.direct(s.s.GetLastMsgForSubject(ctx, subject))
	}
	if from == Leader || from == Either && errors.Is(err, ErrNotFound) {
		m, err = s.c.leader(ctx, s.spec.Name, map[string]any{"last_by_subj": subject})
	}
	return m, err
}

// Next reads the first message of a subject, which may have wildcards, with at least the
// given sequence; [ErrNotFound] means that there is none, which only the leader can prove.
func (s *Stream) Next(ctx context.Context, subject string, sequence uint64, from Source) (Message, error) {
	sequence = max(sequence, 1)
	if from == Leader {
		return s.c.leader(ctx, s.spec.Name, map[string]any{"seq": sequence, "next_by_subj": subject})
	}
	return s.direct(s.s.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(subject)))
}

func (s *Stream) direct(raw *jetstream.RawStreamMsg, err error) (Message, error) {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Message{}, ErrNotFound
	}
	if err != nil {
		return Message{}, fmt.Errorf("reading the record: %w", err)
	}
	return message(raw.Subject, raw.Sequence, raw.Header, raw.Data, raw.Time), nil
}

func message(subject string, sequence uint64, header nats.Header, data []byte, stored time.Time) Message {
	m := Message{Subject: subject, Sequence: sequence, Data: data, Stored: stored}
	if text := header.Get(headerRecord); text != "" {
		m.Record, _ = recordEncoding.DecodeString(text) // what cannot be decoded is no record
	}
	return m
}

// leader reads the message that a request names from the leader of a stream. nats.go
// reads there only from streams without direct access, so the request is made here.
func (c *Conn) leader(ctx context.Context, stream string, request map[string]any) (Message, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	body, err := json.Marshal(request)
	if err != nil {
		return Message{}, fmt.Errorf("asking for the record: %w", err)
	}
	reply, err := c.nc.RequestWithContext(ctx, api+"STREAM.MSG.GET."+stream, body)
	if err != nil {
		return Message{}, fmt.Errorf("reading the record: %w", err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &got); err != nil {
		return Message{}, fmt.Errorf("reading the record: %w", err)
	}
	if got.Error != nil {
		if got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return Message{}, ErrNotFound
		}
		return Message{}, fmt.Errorf("reading the record: %w", got.Error)
	}
	var header nats.Header
	if len(got.Message.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(got.Message.Header); err != nil {
			return Message{}, fmt.Errorf("reading the record's header: %w", err)
		}
	}
	return message(got.Message.Subject, got.Message.Sequence, header, got.Message.Data, got.Message.Time), nil
}

// Read reads messages of a subject from a replica, the first one with at least the
// sequence from: at most that many, but one at least, and no more than maxBytes after the first.
// more says that others follow, or that it is not known, which is so when one was asked for; that
// none do is no proof. Only Sequence and Data are set. nats.go
// has no call for many at once.
func (s *Stream) Read(ctx context.Context, subject string, from uint64, most, maxBytes int) (found []Message, more bool, err error) {
	defer func() {
		if err != nil {
			found, err = nil, fmt.Errorf("reading the stream of %s: %w", s.spec.What, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	request := map[string]any{"seq": max(from, 1), "next_by_subj": subject}
	if most > 1 {
		request["batch"], request["max_bytes"] = most, max(maxBytes, 1)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, false, err
	}
	inbox := s.c.nc.NewInbox()
	sub, err := s.c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only when the connection is closed
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, false, err
	}
	if err := s.c.nc.PublishRequest(api+"DIRECT.GET."+s.spec.Name, inbox, body); err != nil {
		return nil, false, err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, false, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			sequence, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
			if err != nil {
				return nil, false, fmt.Errorf("a message without its sequence: %w", err)
			}
			if found = append(found, Message{Sequence: sequence, Data: m.Data}); most <= 1 {
				return found, true, nil // the server does not say whether others follow
			}
		case "204": // the end of this answer
			return found, len(found) > 0 && m.Header.Get("Nats-Num-Pending") != "0", nil
		case "404": // nothing there
			return found, false, nil
		case "503":
			return nil, false, fmt.Errorf("no server responds for the stream %s", s.spec.Name)
		default:
			return nil, false, fmt.Errorf("the NATS server returned %s", strings.TrimSpace(status+" "+m.Header.Get("Description")))
		}
	}
}

// Purge forgets the messages of a subject, which may have wildcards; with before set,
// only those with a smaller sequence.
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

// Erase removes one message and has the server overwrite its bytes, which neither Purge nor
// a later message of the subject does: they stay in the files of the server until it
// compacts them. A server that encrypts its files removes the message alone. It is no error
// when the message is not there.
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

// Subjects returns the subjects that fit the filter and have messages, in no order.
func (s *Stream) Subjects(ctx context.Context, filter string) ([]string, error) {
	info, err := s.s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("reading the state of the stream of %s: %w", s.spec.What, err)
	}
	all := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		all = append(all, subject)
	}
	return all, nil
}

// StreamState is how full a stream is, and the sequences of its first and last message.
// MaxBytes is -1 where there is no bound. Created is when the stream was made, and Oldest
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
		return StreamState{}, fmt.Errorf("reading the state of the stream of %s: %w", s.spec.What, err)
	}
	return StreamState{int64(min(info.State.Bytes, 1<<62)), info.Config.MaxBytes, info.State.FirstSeq, info.State.LastSeq, info.Created, info.State.FirstTime}, nil
}

// Watch calls f with each message of the subject that is kept, and then with each that is
// stored, in their order, on one goroutine. It returns once everything that was there has
// been seen, or ctx has ended. A message that is forgotten is not told of.
func (s *Stream) Watch(ctx context.Context, subject string, f func(Message)) (*StreamWatch, error) {
	return s.c.watch(ctx, s.spec.What, s.spec.Name, subject, func(m *nats.Msg, sequence uint64, _ bool) { f(watched(m, sequence)) }, beginAll, false)
}

// WatchRecords is Watch without Data.
func (s *Stream) WatchRecords(ctx context.Context, subject string, f func(Message)) (*StreamWatch, error) {
	return s.c.watch(ctx, s.spec.What, s.spec.Name, subject, func(m *nats.Msg, sequence uint64, _ bool) { f(watched(m, sequence)) }, beginAll, true)
}

// Scan calls f with each message of the subject that is kept, as [Stream.Watch] does, and
// ends. Messages that come meanwhile may be among them.
func (s *Stream) Scan(ctx context.Context, subject string, f func(Message)) error {
	w, err := s.c.watch(ctx, s.spec.What, s.spec.Name, subject, func(m *nats.Msg, sequence uint64, live bool) {
		if !live {
			f(watched(m, sequence))
		}
	}, beginAll, false)
	if err != nil {
		return err
	}
	w.Close()
	return nil
}

func watched(m *nats.Msg, sequence uint64) Message {
	return message(m.Subject, sequence, m.Header, m.Data, time.Time{})
}

// Tell tells listeners of the subject, which is not one of the stream, that a message with
// the sequence was stored. It is only a hint, and can be lost.
func (s *Stream) Tell(subject string, sequence uint64) {
	_ = s.c.nc.Publish(subject, binary.BigEndian.AppendUint64(nil, sequence))
}

// Listen calls f with each sequence that listeners of the subject are told of, on one
// goroutine, until stop is called.
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
