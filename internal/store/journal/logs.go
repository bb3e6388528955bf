package journal

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Streams are the streams of journals, by what [Options] says of them.
//
// Each log has its own stream. They are synced at the same time, results are forgotten
// by age, and calls that fill their stream leave space for the intents and results
// without which none of them could ever end.
func (o Options) Streams() []bus.StreamSpec {
	keep := cmp.Or(o.KeepResults, defaultKeepResults)
	kept := bus.StreamSpec{MaxBytes: o.MaxBytes, DenyDelete: true}
	state := kept
	state.Name, state.What = bus.StreamJournals, "journals and their owners"
	state.Subjects = []string{manifestSubject("*"), leaseSubject("*")}
	state.Expires, state.Probe = true, leaseSubject(bus.ProbeToken)
	objects := kept
	objects.Name, objects.What = bus.StreamObjects, "arguments and results that are too large for a record"
	objects.Subjects, objects.Probe = []string{bus.SubjectObject + "*.*.*"}, objectSubject(bus.ProbeToken, "probe", 0)
	objects.MaxAge = keep + keepObjects
	keys := kept
	keys.Name, keys.What = bus.StreamKeys, "idempotency keys"
	keys.Subjects, keys.Expires, keys.Probe = []string{bus.SubjectKey + "*"}, true, bus.SubjectKey+bus.ProbeToken
	return []bus.StreamSpec{state, o.log(LogCalls), o.log(LogIntents), o.log(LogResults), objects, keys}
}

// log is the stream of a log.
func (o Options) log(log Log) bus.StreamSpec {
	s := bus.StreamSpec{Logs: true, MaxBytes: o.MaxBytes, DenyDelete: true, Subjects: []string{log.subject("*")}, Probe: log.subject(bus.ProbeToken)}
	switch log {
	case LogCalls:
		s.Name, s.What = bus.StreamCalls, "durable calls"
	case LogIntents:
		s.Name, s.What = bus.StreamIntents, "intents of durable calls"
	case LogResults:
		s.Name, s.What, s.MaxAge = bus.StreamResults, "results of durable calls", cmp.Or(o.KeepResults, defaultKeepResults)
	}
	return s
}

// Subjects are made of the [bus.Token] of an id, or of "*" for all.

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

// idIn is the id in a subject of a journal.
func idIn(subject, suffix string) schema.BatchID {
	return schema.BatchID(strings.TrimSuffix(strings.TrimPrefix(subject, bus.SubjectJournal), suffix))
}

// streams are the opened streams of all journals, each in the hands of what it is for.
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

// logs are the logs of all journals as they are stored: messages of records by id. All
// methods are safe for concurrent use.
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

// keepResults is how long the stream keeps results, 0 for ever: an operator may have set
// it otherwise than this process would.
func (l *logs) keepResults() time.Duration { return l.results.MaxAge() }

// maxMessage is how many bytes of data fit into one message.
func maxMessage(s *bus.Stream) int { return s.MaxMessage() - 4<<10 }

// Append stores a message when the last one of the log has the sequence last; see
// [bus.Stream.PutAfter]. Listeners hear of it from tell.
func (l *logs) Append(ctx context.Context, id schema.BatchID, log Log, data []byte, last uint64) (uint64, error) {
	return l.of(log).PutAfter(ctx, bus.Message{Subject: log.subject(bus.Token(id)), Data: data}, last)
}

// writable returns a [bus.ErrNotStoring] while writes to the stream of a log fail. What
// must be stored some day (intents, results) is appended all the same.
func (l *logs) writable(log Log) error { return l.of(log).Writable() }

// tell tells listeners that the log has a message with the sequence. It is only a hint:
// they look by themselves once in a while.
func (l *logs) tell(id schema.BatchID, log Log, sequence uint64) {
	l.of(log).Tell(changedSubject(id, log), sequence)
}

// listen calls f with the sequence of each message of the log that listeners are told of,
// on one goroutine, until stop is called. Word can be lost.
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

// next reads the first message of a log with at least the sequence from, from the
// stream's leader: [bus.ErrNotFound] proves that there is none.
func (l *logs) next(ctx context.Context, id schema.BatchID, log Log, from uint64) (bus.Message, error) {
	return l.of(log).Next(ctx, log.subject(bus.Token(id)), from, bus.Leader)
}

// Read reads up to most messages of a log from any replica, the first one with at least
// the sequence from, and no more than maxBytes after the first. None does not prove that
// there are none.
func (l *logs) Read(ctx context.Context, id schema.BatchID, log Log, from uint64, most, maxBytes int) ([]bus.Message, error) {
	found, _, err := l.of(log).Read(ctx, log.subject(bus.Token(id)), from, most, maxBytes)
	return found, err
}

// scan calls f with every stored message of a log, of all journals, in the order in which
// they were stored; see [bus.Stream.Scan].
func (l *logs) scan(ctx context.Context, log Log, f func(id schema.BatchID, m bus.Message)) error {
	return l.of(log).Scan(ctx, log.subject("*"), func(m bus.Message) { f(idIn(m.Subject, log.suffix()), m) })
}

// purge forgets a log.
func (l *logs) purge(ctx context.Context, id schema.BatchID, log Log) error {
	return l.of(log).Purge(ctx, log.subject(bus.Token(id)), 0)
}

// streamOf is the name of the stream of a log.
func streamOf(log Log) string { return Options{}.log(log).Name }
