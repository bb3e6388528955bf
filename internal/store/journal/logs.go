package journal

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Streams returns the specs of the journal streams for these options.
//
// Each log has a separate stream. They are synced concurrently, results expire by age, and calls that
// fill their stream do not take the space of the intents and results that they need to end.
func (o Options) Streams() []bus.StreamSpec {
	kept := bus.StreamSpec{MaxBytes: o.MaxBytes, DenyDelete: true}
	state := kept
	state.Name, state.What = bus.StreamJournals, "journals and their owners"
	state.Subjects = []string{manifestSubject("*"), leaseSubject("*")}
	state.Expires, state.Probe = true, leaseSubject(bus.ProbeToken)
	objects := kept
	objects.Name, objects.What = bus.StreamObjects, "arguments and results that are too large for a record"
	objects.Subjects, objects.Probe = []string{bus.SubjectObject + "*.*.*"}, objectSubject(bus.ProbeToken, "probe", 0)
	objects.MaxAge = keepResults + keepObjects
	keys := kept
	keys.Name, keys.What = bus.StreamKeys, "idempotency keys"
	keys.Subjects, keys.Expires, keys.Probe = []string{bus.SubjectKey + "*"}, true, bus.SubjectKey+bus.ProbeToken
	return []bus.StreamSpec{state, o.log(LogCalls), o.log(LogIntents), o.log(LogResults), objects, keys}
}

// log returns the spec of the stream of a log.
func (o Options) log(log Log) bus.StreamSpec {
	s := bus.StreamSpec{Logs: true, MaxBytes: o.MaxBytes, DenyDelete: true, Subjects: []string{log.subject("*")}, Probe: log.subject(bus.ProbeToken)}
	switch log {
	case LogCalls:
		s.Name, s.What = bus.StreamCalls, "durable calls"
	case LogIntents:
		s.Name, s.What = bus.StreamIntents, "intents of durable calls"
	case LogResults:
		s.Name, s.What, s.MaxAge = bus.StreamResults, "results of durable calls", keepResults
	}
	return s
}

// Subjects contain the [bus.Token] of an id, or "*" for all.

func manifestSubject(token string) string { return bus.SubjectJournal + token + bus.SuffixManifest }
func leaseSubject(token string) string    { return bus.SubjectJournal + token + bus.SuffixLease }

func (l Log) suffix() string {
	switch l {
	case LogIntents:
		return bus.SuffixIntents
	case LogResults:
		return bus.SuffixResults
	}
	return bus.SuffixCalls
}

func (l Log) subject(token string) string { return bus.SubjectJournal + token + l.suffix() }

// idIn returns the id in a subject of a journal.
func idIn(subject, suffix string) schema.BatchID {
	return schema.BatchID(strings.TrimSuffix(strings.TrimPrefix(subject, bus.SubjectJournal), suffix))
}

// streams holds the opened streams of all journals, by purpose.
type streams struct {
	logs      *logs
	manifests manifests
	leases    leases
	objects   objects
	keys      keys
}

func openStreams(ctx context.Context, conn *bus.Conn, o Options) (*streams, error) {
	var all []*bus.Stream
	for _, spec := range o.Streams() {
		s, err := bus.OpenStream(ctx, conn, spec)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return &streams{&logs{all[1], all[2], all[3]}, manifests{all[0]}, leases{all[0]}, objects{all[4], o.DataKeys}, keys{all[5]}}, nil
}

// logs reads and appends the stored messages of all journals, by id. It is safe for concurrent use.
type logs struct{ calls, intents, results *bus.Stream }

func (l *logs) of(log Log) *bus.Stream {
	switch log {
	case LogIntents:
		return l.intents
	case LogResults:
		return l.results
	}
	return l.calls
}

// keepResults returns the effective retention of results, 0 for no limit. It reads the stream, because
// an operator may have changed the setting.
func (l *logs) keepResults() time.Duration { return l.results.MaxAge() }

// maxMessage returns the maximum data size of one message in bytes.
func maxMessage(s *bus.Stream) int { return s.MaxMessage() - 4<<10 }

// Append stores a message if the last one of the log has the sequence last; see
// [bus.Stream.PutAfter]. Use tell to notify listeners.
func (l *logs) Append(ctx context.Context, id schema.BatchID, log Log, data []byte, last uint64) (uint64, error) {
	return l.of(log).PutAfter(ctx, bus.Message{Subject: log.subject(bus.Token(id)), Data: data}, last)
}

// writable returns a [bus.ErrNotStoring] while writes to the stream of a log fail. Intents and results
// must be stored eventually, so they are appended anyway.
func (l *logs) writable(log Log) error { return l.of(log).Writable() }

// tell notifies listeners that the log has a message with the sequence. Notifications can be lost;
// listeners also poll.
func (l *logs) tell(id schema.BatchID, log Log, sequence uint64) {
	l.of(log).Notify(changedSubject(id, log), sequence)
}

// listen calls f with the sequence of each announced message of the log, on one goroutine, until stop is
// called. Notifications can be lost.
func (l *logs) listen(id schema.BatchID, log Log, f func(sequence uint64)) (stop func(), err error) {
	return l.of(log).Listen(changedSubject(id, log), f)
}

func changedSubject(id schema.BatchID, log Log) string {
	return bus.SubjectChanged + bus.Token(id) + "." + strconv.Itoa(int(log))
}

// Last reads the last message of a log from the stream's leader.
func (l *logs) Last(ctx context.Context, id schema.BatchID, log Log) (bus.Message, error) {
	return l.of(log).Last(ctx, log.subject(bus.Token(id)), bus.Leader)
}

// next reads the first message of a log with at least the sequence from, from the stream's leader.
// [bus.ErrNotFound] proves that there is none.
func (l *logs) next(ctx context.Context, id schema.BatchID, log Log, from uint64) (bus.Message, error) {
	return l.of(log).Next(ctx, log.subject(bus.Token(id)), from, bus.Leader)
}

// Read reads up to most messages of a log from any replica, starting with the first one with at least
// the sequence from, and at most maxBytes after the first. An empty result does not prove that there
// are none.
func (l *logs) Read(ctx context.Context, id schema.BatchID, log Log, from uint64, most, maxBytes int) ([]bus.Message, error) {
	found, _, err := l.of(log).Read(ctx, log.subject(bus.Token(id)), from, most, maxBytes)
	return found, err
}

// readToEnd is Read, but an empty result proves that there are none: the leader confirms it. If a
// replica lags, the result is the next message.
func (l *logs) readToEnd(ctx context.Context, id schema.BatchID, log Log, from uint64, most, maxBytes int) ([]bus.Message, error) {
	page, err := l.Read(ctx, id, log, from, most, maxBytes)
	if err != nil || len(page) > 0 {
		return page, err
	}
	m, err := l.next(ctx, id, log, from)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []bus.Message{m}, nil
}

// scan calls f with every stored message of a log, of all journals, in stored order; see
// [bus.Stream.Scan]. It leaves out probes, which are stored after writes have failed.
func (l *logs) scan(ctx context.Context, log Log, f func(id schema.BatchID, m bus.Message)) error {
	return l.of(log).Scan(ctx, log.subject("*"), func(m bus.Message) {
		if id := idIn(m.Subject, log.suffix()); id != bus.ProbeToken {
			f(id, m)
		}
	})
}

// purge deletes a log.
func (l *logs) purge(ctx context.Context, id schema.BatchID, log Log) error {
	return l.of(log).Purge(ctx, log.subject(bus.Token(id)), 0)
}

// streamOf returns the name of the stream of a log.
func streamOf(log Log) string { return Options{}.log(log).Name }
