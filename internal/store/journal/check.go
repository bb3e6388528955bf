package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Fault is an inconsistency in the records of durable calls: acknowledged messages are missing.
type Fault struct {
	// Stream is the stream in which messages are missing.
	Stream string
	// After and Before are the sequences of the messages before and after the missing ones, 0 if
	// there is none.
	After, Before uint64
	// What is the evidence, as the end of a sentence.
	What string

	journal schema.BatchID
}

// String describes the fault in one sentence.
func (f Fault) String() string {
	where := ""
	switch {
	case f.After > 0 && f.Before > 0:
		where = fmt.Sprintf(" between the sequences %d and %d", f.After, f.Before)
	case f.Before > 0:
		where = fmt.Sprintf(" before the sequence %d", f.Before)
	case f.After > 0:
		where = fmt.Sprintf(" after the sequence %d", f.After)
	}
	return "Messages of the stream " + f.Stream + where + " are missing: " + f.What + "."
}

// Findings is the result of [Check].
type Findings struct {
	Faults []Fault
	// Keys holds the hashes of idempotency keys that calls and batches refer to and that have no
	// entry. Only for calls that ran, that is a fault.
	Keys []string
}

const (
	// keysKept is the minimum retention of an entry, with a margin for clock differences.
	keysKept = 23 * time.Hour
	// faultsMost limits the number of reported faults.
	faultsMost = 20
)

// Check verifies the stored records of durable calls: the chain of each log, manifests against calls
// and results, keys against their calls. It changes nothing and may run next to front doors. It cannot
// find the loss of records that no other record refers to, such as the last ones before a crash.
// Journals and keys from before since are skipped, because a loss was accepted then. It reads
// everything; ctx bounds it.
func Check(ctx context.Context, conn *bus.Conn, since time.Time, log *slog.Logger) (*Findings, error) {
	s, err := openStreams(ctx, conn, Options{})
	if err != nil {
		return nil, err
	}
	found, err := check(ctx, s, since)
	if err != nil || len(found.Faults) == 0 {
		return found, err
	}
	log.Warn("the records of durable calls are inconsistent; they are read again", "faults", len(found.Faults))
	again, err := check(ctx, s, since) // writes and purges in progress at the first check are consistent by now
	if err != nil {
		return nil, err
	}
	again.Faults = slices.DeleteFunc(again.Faults, func(f Fault) bool {
		return !slices.ContainsFunc(found.Faults, func(o Fault) bool { return o.Stream == f.Stream && o.journal == f.journal })
	})
	return again, nil
}

// checked holds the data that was read of a journal.
type checked struct {
	m        *Manifest
	chains   [4]chain // by log
	progress *Progress
	intents  map[uint64]bool
	keyed    map[uint64]keyedCall
	ran      map[uint64]bool // calls with a result that names a worker
}

type keyedCall struct {
	hash     string
	accepted time.Time
	plain    bool // it requires an intent
}

// chain is a log in which each message contains the number of records before it.
type chain struct {
	next     uint64 // records so far
	last     uint64 // sequence
	gaps     []gapAt
	unread   []uint64 // sequences of undecodable messages
	frontAt  uint64   // sequence of the first message if records before it are missing
	messages int
}

type gapAt struct{ first, next, after, before uint64 }

func (c *chain) take(h *Head, sequence uint64) {
	switch {
	case c.messages == 0 && h.First > 0:
		c.frontAt = sequence
	case h.First > c.next:
		c.gaps = append(c.gaps, gapAt{c.next, h.First, c.last, sequence})
	}
	c.messages++
	c.next, c.last = max(c.next, h.First+uint64(h.Count)), sequence
}

// checker reads references before their targets, so that writes during the check do not look like
// damage.
type checker struct {
	s     *streams
	since time.Time
	all   map[schema.BatchID]*checked
	keys  map[string]Entry
	then  map[string]bool // keys after the calls were read
	out   Findings
}

func check(ctx context.Context, s *streams, since time.Time) (*Findings, error) {
	c := &checker{s: s, since: since, all: make(map[schema.BatchID]*checked), keys: make(map[string]Entry), then: make(map[string]bool)}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(c.all)) {
		if err := c.compare(ctx, id, c.all[id]); err != nil {
			return nil, err
		}
	}
	c.compareKeys()
	if len(c.out.Faults) > faultsMost {
		more := len(c.out.Faults) - faultsMost
		c.out.Faults = c.out.Faults[:faultsMost]
		c.out.Faults[faultsMost-1].What += fmt.Sprintf("; there are %d more such faults", more)
	}
	return &c.out, nil
}

func (c *checker) of(id schema.BatchID) *checked {
	d := c.all[id]
	if d == nil {
		d = &checked{progress: newProgress(0), intents: make(map[uint64]bool), keyed: make(map[uint64]keyedCall), ran: make(map[uint64]bool)}
		c.all[id] = d
	}
	return d
}

func (c *checker) read(ctx context.Context) error {
	err := c.s.keys.scan(ctx, func(hash string, data []byte) {
		var e Entry
		if len(data) > 0 && json.Unmarshal(data, &e) == nil {
			c.keys[hash] = e
		}
	})
	if err != nil {
		return err
	}
	watch, err := c.s.manifests.watch(ctx, func(id schema.BatchID, data []byte, _ uint64) {
		if m, err := decode(data); err == nil && m.ID == id {
			c.of(id).m = m
		}
	})
	if err != nil {
		return err
	}
	watch.Close()
	for _, log := range []Log{LogResults, LogIntents, LogCalls} {
		if err := c.s.logs.scan(ctx, log, func(id schema.BatchID, m bus.Message) { c.message(log, c.of(id), m) }); err != nil {
			return err
		}
	}
	return c.s.keys.scan(ctx, func(hash string, data []byte) { c.then[hash] = len(data) > 0 })
}

// message adds a message of a log.
func (c *checker) message(log Log, d *checked, m bus.Message) {
	var h Head
	var err error
	switch log {
	case LogResults:
		h, err = ReadResults(m.Data, func(r *ResultRecord) {
			d.progress.stored(r.Mark())
			if r.Worker != "" && r.Attempt > 0 {
				d.ran[r.Index] = true
			}
		})
	case LogIntents:
		h, err = readIntents(m.Data, func(r *IntentRecord) {
			for _, g := range r.Ranges {
				for i := g.First; i < min(g.First+g.Count, maxIndex); i++ {
					d.intents[i] = true
				}
			}
		})
	default:
		h, err = ReadCalls(m.Data, func(r *CallRecord) {
			if r.Key != "" {
				d.keyed[r.Index] = keyedCall{r.Key, r.Accepted, !r.Safe && (r.Method == "" || r.Method == schema.MethodCallTool)}
			}
		})
	}
	if err != nil {
		d.chains[log].unread = append(d.chains[log].unread, m.Sequence)
		return
	}
	d.chains[log].take(&h, m.Sequence)
}

func (c *checker) fault(id schema.BatchID, stream string, after, before uint64, format string, args ...any) {
	c.out.Faults = append(c.out.Faults, Fault{stream, after, before, fmt.Sprintf(format, args...), id})
}

// compare checks one journal.
func (c *checker) compare(ctx context.Context, id schema.BatchID, d *checked) error {
	calls, results := &d.chains[LogCalls], &d.chains[LogResults]
	if d.m == nil {
		if data, _, err := c.s.manifests.get(ctx, id, bus.Leader); err == nil {
			if d.m, err = decode(data); err != nil {
				c.fault(id, bus.StreamJournals, 0, 0, "the manifest of journal %s cannot be read", id)
				return nil
			}
		} else if !isNotFound(err) {
			return unavailable(err)
		}
	}
	if made, ok := schema.IDTime(string(id)); d.m == nil && ok && made.Before(c.since) {
		return nil
	}
	if d.m == nil {
		c.fault(id, bus.StreamJournals, 0, 0, "there are calls, intents or results of journal %s, but the journal is missing", id)
		return nil
	}
	m, keep := d.m, c.s.logs.keepResults()
	if m.Deleted || m.Created.Before(c.since) {
		return nil
	}
	aged := m.Forgotten || keep > 0 && time.Since(m.Created) > keep-time.Hour
	for log, name := range map[Log]string{LogCalls: "calls", LogIntents: "intents", LogResults: "results"} {
		if log != LogResults && m.Purged || log == LogResults && aged {
			continue
		}
		ch := &d.chains[log]
		for _, seq := range ch.unread {
			c.fault(id, streamOf(log), seq-1, seq+1, "the message of journal %s cannot be read", id)
		}
		if len(ch.unread) > 0 {
			continue
		}
		if ch.frontAt > 0 {
			c.fault(id, streamOf(log), 0, ch.frontAt, "the start of the log of %s of journal %s is missing", name, id)
		}
		for _, g := range ch.gaps {
			c.fault(id, streamOf(log), g.after, g.before, "%d %s of journal %s are missing", g.next-g.first, name, id)
		}
	}
	if !m.Purged && len(calls.unread) == 0 {
		if known := max(m.Calls, d.progress.Accepted()); known > calls.next {
			c.fault(id, streamOf(LogCalls), calls.last, 0, "journal %s has %d calls, but %d are stored", id, known, calls.next)
		}
	}
	if missing := d.progress.Next(0); m.State == Ended && !aged && len(results.unread) == 0 && missing < m.Calls {
		c.fault(id, streamOf(LogResults), results.last, 0, "journal %s has ended, but its call %d has no result", id, missing)
	}
	if m.Purged || m.Epoch != 1 || m.Kind != Lane {
		return nil
	}
	for i, k := range d.keyed {
		if k.plain && d.ran[i] && !d.intents[i] {
			c.fault(id, streamOf(LogIntents), d.chains[LogIntents].last, 0, "call %d of journal %s has a result, but the intent that was stored before it was sent is missing", i, id)
			break
		}
	}
	return nil
}

// compareKeys checks keys against their calls and batches.
func (c *checker) compareKeys() {
	for _, hash := range slices.Sorted(maps.Keys(c.keys)) {
		e := c.keys[hash]
		if e.Journal == "" || e.At.Before(c.since) {
			continue // the key of a held call, which is in the ledger
		}
		d := c.all[e.Journal]
		switch {
		case d == nil:
			c.fault(e.Journal, bus.StreamJournals, 0, 0, "an idempotency key refers to journal %s, which is missing", e.Journal)
		case d.m != nil && e.CallID != "" && !d.m.Purged && !d.m.Deleted && e.Index >= d.chains[LogCalls].next:
			c.fault(e.Journal, streamOf(LogCalls), d.chains[LogCalls].last, 0, "an idempotency key refers to call %d of journal %s, which is missing", e.Index, e.Journal)
		}
	}
	must := 0
	for id, d := range c.all {
		if d.m != nil && d.m.Created.Before(c.since) {
			continue
		}
		if d.m != nil && d.m.Key != "" && !c.then[d.m.Key] && time.Since(d.m.Created) < keysKept {
			c.out.Keys = append(c.out.Keys, d.m.Key)
			if d.m.Calls > 0 && d.m.State != Canceling {
				if must++; must == 1 {
					c.fault(id, bus.StreamKeys, 0, 0, "batch %s was created with an idempotency key that is missing", id)
				}
			}
		}
		for i, k := range d.keyed {
			if c.then[k.hash] || time.Since(k.accepted) > keysKept {
				continue
			}
			c.out.Keys = append(c.out.Keys, k.hash)
			if d.ran[i] {
				if must++; must == 1 {
					c.fault(id, bus.StreamKeys, 0, 0, "call %d of journal %s ran with an idempotency key that is missing", i, id)
				}
			}
		}
	}
	slices.Sort(c.out.Keys)
}
