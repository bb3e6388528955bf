package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// writesFailAfter is how long writes to a stream must fail before the process says
	// that it is not ready.
	writesFailAfter = 3 * time.Second
	// probeEvery is how often a stream is tried whose writes fail, probeFor how long one
	// try may take.
	probeEvery = time.Second
	probeFor   = 2 * time.Second
	// probeName takes the place of an id in the subject of a probe. No id is spelled
	// like it, and nobody reads the message.
	probeName = "write-probe"
)

// ErrNotStoring is an [ErrRefused] without a try: writes to the stream have failed for
// some seconds, and nothing is sent to it but probes until one succeeds.
var ErrNotStoring = fmt.Errorf("%w: NATS does not store", ErrRefused)

// writes knows to which streams this connection cannot write at the moment. A server
// whose disk is full does not answer writes; a single one keeps the error of a stream
// until it is started again. While a stream fails, a small message is written to it each
// second. It is safe for concurrent use.
type writes struct {
	mu      sync.Mutex
	failing map[string]*failing // by stream
	probing bool
	closed  bool
	done    sync.WaitGroup
	life    context.Context
	end     context.CancelFunc
}

// failing is a stream whose writes fail.
type failing struct {
	since time.Time
	err   error
	probe *nats.Msg
	ttl   bool
}

func (w *writes) open() {
	w.failing = make(map[string]*failing)
	w.life, w.end = context.WithCancel(context.Background())
}

// close ends the probes and waits for the last one.
func (w *writes) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.end()
	w.done.Wait()
}

// probeOf names the stream of a subject and the subject of its probes; the empty
// stream is one that is not watched: nothing that a caller waits for is written there,
// or each message counts. ttl says that the stream takes messages that expire.
func probeOf(subject string) (stream, probe string, ttl bool) {
	rest, journal := strings.CutPrefix(subject, subjectJournal)
	switch {
	case journal:
		for token, stream := range map[string]string{tokenCalls: streamCalls, tokenIntents: streamIntents, tokenResults: streamResults} {
			if strings.HasSuffix(rest, token) {
				return stream, subjectJournal + probeName + token, false
			}
		}
		return streamJournals, subjectJournal + probeName + tokenLease, true
	case strings.HasPrefix(subject, subjectApproval), strings.HasPrefix(subject, subjectPart):
		return streamLedger, partSubject(PartKept, probeName, "probe", "probe", 0), false
	case strings.HasPrefix(subject, subjectHeld):
		return streamHeld, partSubject(PartHeld, probeName, "probe", "probe", 0), false
	case strings.HasPrefix(subject, subjectObject):
		return streamObjects, objectSubject(probeName, "probe", 0), false
	case strings.HasPrefix(subject, subjectKey):
		return streamKeys, subjectKey + probeName, true
	case strings.HasPrefix(subject, subjectDelivery):
		return streamDeliveries, subjectDelivery + probeName + tokenBody, true
	case strings.HasPrefix(subject, subjectNotice):
		return streamNoticeDeliveries, subjectNotice + probeName + tokenBody, true
	}
	return "", "", false
}

// storingFailed says that an error of a write is one of the store, not of what was written
// or of the caller.
func storingFailed(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return noRoom(err) || api.ErrorCode == codeNotAvailable
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, nats.ErrInvalidMsg)
}

// store publishes a message to its stream and waits until it is stored. All writes to
// streams that are read as records go through here, so that it is known which fail.
func (c *Conn) store(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (uint64, error) {
	begun := time.Now()
	ack, err := c.js.PublishMsg(ctx, m, opts...)
	c.wrote(m.Subject, begun, err)
	return published(ack, err)
}

// wrote notes how a write to the subject that began then ended.
func (c *Conn) wrote(subject string, begun time.Time, err error) {
	w := &c.writes
	stream, probe, ttl := probeOf(subject)
	if stream == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		if f := w.failing[stream]; f != nil && begun.After(f.since) {
			delete(w.failing, stream)
			c.log.Info("NATS stores again", "stream", stream, "failed_for", time.Since(f.since).Round(time.Millisecond))
		}
		return
	}
	// Without a connection nothing is stored either, which [Conn.Ready] says.
	if w.closed || !storingFailed(err) || c.Ready() != nil {
		return
	}
	f := w.failing[stream]
	if f == nil {
		f = &failing{since: begun, probe: &nats.Msg{Subject: probe}, ttl: ttl}
		w.failing[stream] = f
	}
	f.err = err
	if !w.probing {
		w.probing = true
		w.done.Go(c.probe)
	}
}

// probe tries the streams whose writes fail, until there is none.
func (c *Conn) probe() {
	w := &c.writes
	told := make(map[string]bool)
	for {
		w.mu.Lock()
		all := make(map[string]failing, len(w.failing))
		for stream, f := range w.failing {
			all[stream] = *f
			if !told[stream] && time.Since(f.since) >= writesFailAfter {
				told[stream] = true
				c.log.Error("NATS does not store what is written; see that its disk has room, and that it runs", "stream", stream, "since", f.since.UTC(), "error", f.err)
			}
		}
		if w.probing = len(all) > 0 && !w.closed; !w.probing {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		var tries sync.WaitGroup
		for _, f := range all {
			tries.Go(func() { c.probeOnce(f) })
		}
		tries.Wait()
		select {
		case <-w.life.Done():
		case <-time.After(probeEvery):
		}
	}
}

func (c *Conn) probeOnce(f failing) {
	ctx, cancel := context.WithTimeout(c.writes.life, probeFor)
	defer cancel()
	var opts []jetstream.PublishOpt
	if f.ttl {
		opts = append(opts, jetstream.WithMsgTTL(time.Second))
	}
	begun := time.Now()
	_, err := c.js.PublishMsg(ctx, f.probe, opts...)
	c.wrote(f.probe.Subject, begun, err)
}

// Storing returns nil while NATS stores what this connection writes, else since when it
// does not and why: writes to at least one stream have failed for three seconds. A
// connection that does not stand is [Conn.Ready]'s to tell.
func (c *Conn) Storing() error {
	streams := c.notStoring()
	if len(streams) == 0 {
		return nil
	}
	return streams[0].err()
}

// NotStoring counts the streams that [Conn.Storing] is about.
func (c *Conn) NotStoring() int { return len(c.notStoring()) }

// writable returns an [ErrNotStoring] while writes to the stream fail.
func (c *Conn) writable(stream string) error {
	for _, f := range c.notStoring() {
		if f.stream == stream {
			return f.err()
		}
	}
	return nil
}

// notStored is a stream whose writes have failed for long enough to say so.
type notStored struct {
	stream string
	since  time.Time
	why    error
}

func (n notStored) err() error {
	return fmt.Errorf("%w in %s since %s (%w): see that the disk of NATS has room; a NATS server that stays so must be started again", ErrNotStoring, n.stream, n.since.UTC().Format("15:04:05Z"), n.why)
}

func (c *Conn) notStoring() []notStored {
	w := &c.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []notStored
	for stream, f := range w.failing {
		if time.Since(f.since) >= writesFailAfter {
			all = append(all, notStored{stream, f.since, f.err})
		}
	}
	slices.SortFunc(all, func(a, b notStored) int { return cmp.Compare(a.stream, b.stream) })
	return all
}
