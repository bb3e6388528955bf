package bus

import (
	"context"
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

// JournalOptions say how long journals are kept. They count when the streams are
// made; those that exist are left as they are.
type JournalOptions struct {
	// KeepResults is how long a result is kept after it was stored.
	KeepResults time.Duration
	// MaxBytes bounds each stream; a full one refuses writes. 0 means no bound.
	MaxBytes int64
}

// Journals are the streams of all journals. They know ids, bytes and sequence
// numbers; what a record means is decided in internal/ledger/journal.
//
// Each log has its own stream. They are synced at the same time, results are
// forgotten by age, and calls that fill their stream leave room for the intents
// and results without which none of them could ever end.
//
// All methods are safe for concurrent use.
type Journals struct {
	c       *Conn
	keep    time.Duration
	state   jetstream.Stream
	calls   jetstream.Stream
	intents jetstream.Stream
	results jetstream.Stream
	objects jetstream.Stream
}

// JournalMessage is a stored message.
type JournalMessage struct {
	Sequence uint64
	Data     []byte
}

// journalConfigs are the streams of journals.
type journalConfigs struct{ state, calls, intents, results, objects, keys jetstream.StreamConfig }

func journalStreams(o JournalOptions, replicas int) journalConfigs {
	stream := func(name, what string, perSubject int64, maxAge time.Duration, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Description: what, Subjects: subjects, MaxMsgsPerSubject: perSubject, MaxAge: maxAge,
			Storage: jetstream.FileStorage, Replicas: replicas, MaxBytes: bound(o.MaxBytes),
			// A full journal refuses: it never drops what it promised to keep.
			Discard: jetstream.DiscardNew, AllowDirect: true, DenyDelete: true,
		}
	}
	log := func(token string) string { return subjectJournal + "*" + token }
	j := journalConfigs{
		state:   stream(streamJournals, "what is known of journals, and who has them", 1, 0, log(tokenManifest), log(tokenLease)),
		calls:   stream(streamCalls, "durable calls", -1, 0, log(tokenCalls)),
		intents: stream(streamIntents, "durable calls that were about to leave", -1, 0, log(tokenIntents)),
		results: stream(streamResults, "results of durable calls", -1, o.KeepResults, log(tokenResults)),
		// Bytes are stored before the record that points at them and so are a little
		// older: they get an hour more.
		objects: stream(streamObjects, "arguments and results that are too large for a record", 1, o.KeepResults+time.Hour, subjectObject+"*.*.*"),
		keys:    stream(streamKeys, "idempotency keys", 1, 0, subjectKey+"*"),
	}
	j.state.AllowMsgTTL, j.keys.AllowMsgTTL = true, true
	return j
}

// OpenJournals opens the streams of journals.
func OpenJournals(ctx context.Context, c *Conn, o JournalOptions) (*Journals, error) {
	j, all := &Journals{c: c}, journalStreams(o, c.replicas)
	var keys jetstream.Stream // it is only looked at
	for _, s := range []struct {
		to   *jetstream.Stream
		want jetstream.StreamConfig
	}{{&j.state, all.state}, {&j.calls, all.calls}, {&j.intents, all.intents}, {&j.results, all.results}, {&j.objects, all.objects}, {&keys, all.keys}} {
		got, err := openStream(ctx, c, s.want)
		if err != nil {
			return nil, err
		}
		*s.to = got
	}
	j.keep = j.results.CachedInfo().Config.MaxAge
	return j, nil
}

// KeepResults is how long the stream keeps results, 0 for ever: an operator may
// have set it otherwise than this process would.
func (j *Journals) KeepResults() time.Duration { return j.keep }

// MaxMessage is how many bytes fit into one message.
func (j *Journals) MaxMessage() int { return j.c.MaxPayload() - 4<<10 }

// PlainID says that an id can name a journal.
func PlainID(id string) bool { return plainToken(id) }

func (j *Journals) log(id string, log JournalLog) (stream jetstream.Stream, name, subject string) {
	switch log {
	case JournalIntents:
		return j.intents, streamIntents, subjectJournal + token(id) + tokenIntents
	case JournalResults:
		return j.results, streamResults, subjectJournal + token(id) + tokenResults
	}
	return j.calls, streamCalls, subjectJournal + token(id) + tokenCalls
}

// Append stores a message when the last one of the log has the sequence last; 0
// means that there must be none. It returns the new sequence; [ErrConflict] means
// that the last one is another, [ErrRefused] that nothing was stored, and any
// other error that nobody knows. Listeners hear of it from [Journals.Tell].
func (j *Journals) Append(ctx context.Context, id string, log JournalLog, data []byte, last uint64) (uint64, error) {
	_, _, subject := j.log(id, log)
	return j.c.publishAfter(ctx, &nats.Msg{Subject: subject, Data: data}, last)
}

// Writable returns an [ErrNotStoring] while writes to the stream of a log fail. What
// must be stored some day (intents, results) is appended all the same.
func (j *Journals) Writable(log JournalLog) error {
	_, name, _ := j.log("", log)
	return j.c.writable(name)
}

// Tell tells listeners ([Journals.OnAppend]) that the log has a message with the
// sequence. It is only a hint: they look by themselves once in a while.
func (j *Journals) Tell(id string, log JournalLog, sequence uint64) {
	_ = j.c.nc.Publish(changedSubject(id, log), binary.BigEndian.AppendUint64(nil, sequence))
}

func changedSubject(id string, log JournalLog) string {
	return subjectChanged + token(id) + "." + strconv.Itoa(int(log))
}

// OnAppend calls f with the sequence of each message of the log that listeners are told
// of, on one goroutine, until the returned function is called. Word can be lost.
func (j *Journals) OnAppend(id string, log JournalLog, f func(sequence uint64)) (stop func(), err error) {
	done := make(chan struct{})
	sub, err := j.c.subscribe(changedSubject(id, log), "", func(m *nats.Msg) {
		if len(m.Data) == 8 {
			f(binary.BigEndian.Uint64(m.Data))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listening for appends: %w", err)
	}
	sub.SetClosedHandler(func(string) { close(done) })
	return func() {
		_ = sub.Unsubscribe() // it fails only when the connection is gone, which ends it too
		<-done
	}, nil
}

// Last reads the last message of a log from the stream's leader.
func (j *Journals) Last(ctx context.Context, id string, log JournalLog) (JournalMessage, error) {
	_, name, subject := j.log(id, log)
	m, err := j.c.leader(ctx, name, subject)
	return JournalMessage{m.sequence, m.data}, err
}

// After reads the first message of a log with at least the sequence from, from the
// stream's leader: [ErrNotFound] proves that there is none.
func (j *Journals) After(ctx context.Context, id string, log JournalLog, from uint64) (JournalMessage, error) {
	_, name, subject := j.log(id, log)
	m, err := j.c.fromLeader(ctx, name, map[string]any{"seq": max(from, 1), "next_by_subj": subject})
	return JournalMessage{m.sequence, m.data}, err
}

// Read reads up to most messages of a log, the first one with at least the sequence
// from, and stops after maxBytes bytes. A replica may answer that is behind: that none
// come back does not prove that there are none.
func (j *Journals) Read(ctx context.Context, id string, log JournalLog, from uint64, most, maxBytes int) ([]JournalMessage, error) {
	_, name, subject := j.log(id, log)
	body, err := json.Marshal(map[string]any{"seq": max(from, 1), "next_by_subj": subject, "batch": max(most, 1), "max_bytes": max(maxBytes, 1)})
	if err != nil {
		return nil, fmt.Errorf("asking for records: %w", err)
	}
	inbox := j.c.nc.NewRespInbox()
	sub, err := j.c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("asking for records: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only when the connection is gone
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, fmt.Errorf("asking for records: %w", err)
	}
	if err := j.c.nc.PublishRequest(jetstream.DefaultAPIPrefix+"DIRECT.GET."+name, inbox, body); err != nil {
		return nil, fmt.Errorf("asking for records: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var found []JournalMessage
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading records: %w", err)
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading records: the answer has no sequence")
			}
			found = append(found, JournalMessage{seq, m.Data})
		case "204", "404": // the end; nothing there
			return found, nil
		case "503":
			return nil, fmt.Errorf("reading records: no server answers for the stream %s", name)
		default:
			return nil, fmt.Errorf("reading records: the server answers %s %s", status, m.Header.Get("Description"))
		}
	}
}

// Room returns how many bytes the stream of a log holds and may hold, -1 for any
// number.
func (j *Journals) Room(ctx context.Context, log JournalLog) (used, most int64, err error) {
	s, _, _ := j.log("", log)
	info, err := s.Info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the state of the stream: %w", err)
	}
	return int64(min(info.State.Bytes, 1<<62)), info.Config.MaxBytes, nil
}

// Purge forgets a log.
func (j *Journals) Purge(ctx context.Context, id string, log JournalLog) error {
	s, _, subject := j.log(id, log)
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return fmt.Errorf("forgetting records: %w", err)
	}
	return nil
}

// PutManifest stores the manifest of a journal when its revision is the given one; 0
// means that there must be none. It is forgotten after keep, 0 for never. It returns
// the new revision.
func (j *Journals) PutManifest(ctx context.Context, id string, data []byte, revision uint64, keep time.Duration) (uint64, error) {
	if err := j.c.writable(streamJournals); err != nil {
		return 0, err
	}
	return j.putState(ctx, subjectJournal+token(id)+tokenManifest, data, revision, keep)
}

// Manifest reads a manifest and its revision. A replica may answer that is behind;
// with fresh set the stream's leader is asked.
func (j *Journals) Manifest(ctx context.Context, id string, fresh bool) (data []byte, revision uint64, err error) {
	subject := subjectJournal + token(id) + tokenManifest
	m, err := message{}, ErrNotFound
	if !fresh {
		m, err = direct(ctx, j.state, subject)
	}
	if errors.Is(err, ErrNotFound) {
		m, err = j.c.leader(ctx, streamJournals, subject)
	}
	return m.data, m.sequence, err
}

// PutLease stores who has a journal, as PutManifest does.
func (j *Journals) PutLease(ctx context.Context, id string, data []byte, revision uint64, keep time.Duration) (uint64, error) {
	return j.putState(ctx, subjectJournal+token(id)+tokenLease, data, revision, keep)
}

// Lease reads who has a journal, from the stream's leader.
func (j *Journals) Lease(ctx context.Context, id string) (data []byte, revision uint64, err error) {
	m, err := j.c.leader(ctx, streamJournals, subjectJournal+token(id)+tokenLease)
	return m.data, m.sequence, err
}

// secretName stands for the id of a journal; none has it.
const secretName = "secret"

// Secret reads the secret of the journals from the stream's leader, or [ErrNotFound].
func (j *Journals) Secret(ctx context.Context) ([]byte, error) {
	m, err := j.c.leader(ctx, streamJournals, subjectJournal+secretName+tokenLease)
	return m.data, err
}

// PutSecret stores the secret of the journals; [ErrConflict] means that there is one.
func (j *Journals) PutSecret(ctx context.Context, secret []byte) error {
	_, err := j.putState(ctx, subjectJournal+secretName+tokenLease, secret, 0, 0)
	return err
}

// DropLease forgets a lease if its revision is still the given one.
func (j *Journals) DropLease(ctx context.Context, id string, revision uint64) error {
	err := j.state.Purge(ctx, jetstream.WithPurgeSubject(subjectJournal+token(id)+tokenLease), jetstream.WithPurgeSequence(revision+1))
	if err != nil {
		return fmt.Errorf("giving the lease back: %w", err)
	}
	return nil
}

func (j *Journals) putState(ctx context.Context, subject string, data []byte, revision uint64, keep time.Duration) (uint64, error) {
	var opts []jetstream.PublishOpt
	if keep > 0 {
		// The server counts whole seconds and takes no less than one.
		opts = append(opts, jetstream.WithMsgTTL(max(keep.Truncate(time.Second), time.Second)))
	}
	return j.c.publishAfter(ctx, &nats.Msg{Subject: subject, Data: data}, revision, opts...)
}

// PutKey stores what an idempotency key stands for, unless there is an entry:
// [ErrConflict]. It is forgotten after keep.
func (j *Journals) PutKey(ctx context.Context, hash string, data []byte, keep time.Duration) error {
	if err := j.c.writable(streamKeys); err != nil {
		return err
	}
	_, err := j.putState(ctx, subjectKey+token(hash), data, 0, max(keep, time.Second))
	return err
}

// Key reads what an idempotency key stands for, from the stream's leader.
func (j *Journals) Key(ctx context.Context, hash string) ([]byte, error) {
	m, err := j.c.leader(ctx, streamKeys, subjectKey+token(hash))
	return m.data, err
}

// WatchManifests calls f for every manifest that is kept and then for each write,
// on one goroutine. It returns once everything that was there has been seen, or ctx
// has ended. A manifest that is forgotten is not told of.
func (j *Journals) WatchManifests(ctx context.Context, f func(id string, data []byte, revision uint64)) (*StreamWatch, error) {
	return j.c.watch(ctx, "journals", streamJournals, subjectJournal+"*"+tokenManifest, func(m *nats.Msg, sequence uint64, _ bool) {
		f(strings.TrimSuffix(strings.TrimPrefix(m.Subject, subjectJournal), tokenManifest), m.Data, sequence)
	}, beginAll, false)
}
