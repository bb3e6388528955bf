package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// writesFailAfter is the time for which writes to a stream must fail before the process
	// reports that it is not ready.
	writesFailAfter = 3 * time.Second
	// probeEvery is the interval of probes to a stream whose writes fail. probeFor limits one
	// probe.
	probeEvery = time.Second
	probeFor   = 2 * time.Second
)

// ErrNotStoring is an [ErrRefused] without an attempt. Writes to the stream have failed for some
// seconds, and only probes are sent to it until one succeeds.
var ErrNotStoring = fmt.Errorf("%w: NATS does not store", ErrRefused)

// writes tracks the streams to which this connection currently cannot write. A server whose disk
// is full does not respond to writes, and a single server keeps the error of a stream until it
// restarts. While a stream fails, a small message is written to it each second. It is safe for
// concurrent use.
type writes struct {
	c       *Conn
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
	spec  *StreamSpec
}

func (w *writes) open(c *Conn) {
	w.c = c
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

// storingFailed reports whether an error of a write is caused by the store, and not by the message
// or the caller.
func storingFailed(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return noSpace(err) || api.ErrorCode == codeNotAvailable || missingStream(err)
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, nats.ErrInvalidMsg)
}

// wrote records the result of a write to the stream that started at begun.
func (w *writes) wrote(s *StreamSpec, begun time.Time, err error) {
	if s.Probe == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		if f := w.failing[s.Name]; f != nil && begun.After(f.since) {
			delete(w.failing, s.Name)
			w.c.log.Info("NATS stores again", "stream", s.Name, "failed_for", time.Since(f.since).Round(time.Millisecond))
		}
		return
	}
	// Without a connection writes fail too, but [Conn.Ready] reports that.
	if w.closed || !storingFailed(err) || w.c.Ready() != nil {
		return
	}
	f := w.failing[s.Name]
	if f == nil {
		f = &failing{since: begun, spec: s}
		w.failing[s.Name] = f
	}
	f.err = err
	if !w.probing {
		w.probing = true
		w.done.Go(w.probe)
	}
}

// probe probes the streams whose writes fail, until there are none.
func (w *writes) probe() {
	logged := make(map[string]bool)
	for {
		w.mu.Lock()
		all := make(map[string]failing, len(w.failing))
		for stream, f := range w.failing {
			all[stream] = *f
			if !logged[stream] && time.Since(f.since) >= writesFailAfter {
				logged[stream] = true
				w.c.log.Error("NATS does not store writes; check that each NATS server runs, responds and has disk space", "stream", stream, "since", f.since.UTC(), "error", f.err)
			}
		}
		if w.probing = len(all) > 0 && !w.closed; !w.probing {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		var tries sync.WaitGroup
		for _, f := range all {
			tries.Go(func() { w.probeOnce(f) })
		}
		tries.Wait()
		select {
		case <-w.life.Done():
		case <-time.After(probeEvery):
		}
	}
}

func (w *writes) probeOnce(f failing) {
	ctx, cancel := context.WithTimeout(w.life, probeFor)
	defer cancel()
	var opts []jetstream.PublishOpt
	if f.spec.Expires {
		opts = append(opts, jetstream.WithMsgTTL(time.Second))
	}
	begun := time.Now()
	_, err := w.c.js.PublishMsg(ctx, &nats.Msg{Subject: f.spec.Probe}, opts...)
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		if _, missing := w.c.js.Stream(ctx, f.spec.Name); errors.Is(missing, jetstream.ErrStreamNotFound) {
			err = errMissing("stream", f.spec.Name, f.spec.What)
		}
	}
	w.wrote(f.spec, begun, err)
}

// read records the result of a read from the leader of the stream. If somebody has removed the
// stream, writers fail before their first write, because they read first.
func (w *writes) read(s *StreamSpec, begun time.Time, err error) {
	if missingStream(err) {
		w.wrote(s, begun, err)
	}
}

func missingStream(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == jetstream.JSErrCodeStreamNotFound
}

// Storing returns nil while NATS stores the writes of this connection. If writes to at least one
// stream have failed for three seconds, it returns an error with the start time and the reason. A
// lost connection is reported by [Conn.Ready].
func (c *Conn) Storing() error {
	streams := c.writes.notStoring()
	if len(streams) == 0 {
		return nil
	}
	return streams[0].err()
}

// NotStoring returns the number of streams for which [Conn.Storing] would return an error.
func (c *Conn) NotStoring() int { return len(c.writes.notStoring()) }

// writable returns [ErrNotStoring] while writes to the stream fail.
func (w *writes) writable(stream string) error {
	for _, f := range w.notStoring() {
		if f.stream == stream {
			return f.err()
		}
	}
	return nil
}

// notStored is a stream whose writes have failed for at least writesFailAfter.
type notStored struct {
	stream string
	since  time.Time
	why    error
}

func (n notStored) err() error {
	if missingStream(n.why) || errors.Is(n.why, errNotThere) {
		return fmt.Errorf("%w in %s since %s: %w", ErrNotStoring, n.stream, n.since.UTC().Format("15:04:05Z"), n.why)
	}
	return fmt.Errorf("%w in %s since %s (%w): check that each NATS server runs, responds and has disk space; restart one that does not recover", ErrNotStoring, n.stream, n.since.UTC().Format("15:04:05Z"), n.why)
}

func (w *writes) notStoring() []notStored {
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
