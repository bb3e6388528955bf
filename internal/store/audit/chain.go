package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// chain is the state of the goroutine of a log.
type chain struct {
	log  *Log
	seq  uint64
	prev string
	last uint64 // sequence of the last message in the stream

	at        time.Time // when the last was stored
	headSeq   uint64
	headFails bool      // whether the last attempt to store the head failed
	deadline  time.Time // set once the log is closed
}

// run groups queued entries, stores them and updates the head.
func (c *chain) run() {
	defer close(c.log.done)
	tick := time.NewTicker(c.log.every)
	defer tick.Stop()
	for {
		select {
		case i, ok := <-c.log.queue:
			if !ok || !c.group(i) {
				c.finish()
				return
			}
		case <-tick.C:
			c.repairHead()
		}
	}
}

// group stores i and the entries queued after it. It returns false if the queue is closed or storing
// was given up.
func (c *chain) group(i *item) bool {
	var lines []byte
	var waiting []chan error
	seq, prev, count, open := c.seq, c.prev, 0, true
	take := func(i *item) {
		if i.stored != nil {
			waiting = append(waiting, i.stored)
			return
		}
		cut(&i.entry)
		r := Record{Version: version, Writer: c.log.writer, Seq: seq + 1, Prev: prev, Entry: i.entry}
		longer, err := appendLine(lines, &r)
		if err != nil { // cannot happen: an entry is always encodable
			c.log.log.Error("an audit entry cannot be encoded; it is skipped", "kind", i.entry.Kind, "error", err)
			return
		}
		lines, seq, prev = longer, seq+1, r.Hash
		count++
	}
	take(i)
	// Entries that arrive soon share the write and its disk sync. A Sync ends the wait.
	wait := time.NewTimer(c.log.linger)
	defer wait.Stop()
	for late := false; count < groupLines && len(lines) < groupBytes && open; {
		var next *item
		select {
		case next, open = <-c.log.queue:
			if open {
				take(next)
			}
			continue
		default:
		}
		if late || len(waiting) > 0 {
			break
		}
		select {
		case next, open = <-c.log.queue:
			if open {
				take(next)
			}
		case <-wait.C:
			late = true
		case <-c.log.stop:
			late = true
		}
	}
	err := c.store(lines)
	if err == nil {
		c.seq, c.prev, c.at = seq, prev, time.Now().UTC()
	}
	for _, w := range waiting {
		w <- err
	}
	return open && err == nil
}

// cut truncates the free texts of an entry.
func cut(e *Entry) {
	for _, s := range []*string{&e.Reason, &e.Rule, &e.Error, &e.Outcome, &e.Tool, (*string)(&e.Server), &e.By, &e.Owner, &e.Attempt, &e.Channel, (*string)(&e.Worker), &e.Path, &e.Credential, &e.Client, &e.Resource, &e.Scopes, &e.Person} {
		*s = truncate.Text(*s, maxText)
	}
}

// errStoring means that an earlier attempt to store the same records may still succeed.
var errStoring = errors.New("an earlier write is still in progress")

// store appends lines to the stream and retries until they are stored. It gives up only after the log
// was closed, or if another writer appends to the chain.
func (c *chain) store(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	for warned := false; ; {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		seq, err := c.log.store.append(ctx, c.log.writer, lines, c.last)
		if errors.Is(err, bus.ErrConflict) {
			// An attempt whose reply was lost may have stored them, or a cluster may still be storing them:
			// then it refuses a repeated write, and the last message is still the one before.
			var m message
			if m, err = c.log.store.last(ctx, c.log.writer); err == nil {
				switch seq = m.Sequence; {
				case bytes.Equal(m.Data, lines):
				case seq == c.last:
					err = errStoring
				default:
					cancel()
					c.log.log.Error("another process writes this process's audit chain; no further records are stored", "writer", c.log.writer, "sequence", m.Sequence)
					return schema.Errorf(schema.KindInternal, "Another process writes the audit chain %s.", c.log.writer)
				}
			}
		}
		cancel()
		if err == nil {
			c.last = seq
			return nil
		}
		if !warned {
			warned = true
			c.log.log.Error("audit records cannot be stored; retrying", "error", err)
		}
		if !c.pause() {
			return schema.Errorf(schema.KindUnavailable, "The audit record cannot be stored; check that NATS is running and has disk space. (%w)", err)
		}
	}
}

// pause waits before a retry. It returns false if it is time to give up.
func (c *chain) pause() bool {
	stop := c.log.stop
	if !c.deadline.IsZero() {
		stop = nil
	}
	if !sleep.For(retryWait, stop) {
		c.deadline = time.Now().Add(closeTimeout)
	}
	return c.deadline.IsZero() || time.Now().Before(c.deadline)
}

func (c *chain) repairHead() {
	if c.seq == c.headSeq {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	err := c.keepHead(ctx, false)
	if err != nil && !c.headFails {
		c.log.log.Warn("the head of the audit chain cannot be stored; retrying", "error", err)
	}
	c.headFails = err != nil
}

func (c *chain) keepHead(ctx context.Context, closed bool) error {
	body, err := json.Marshal(Head{Version: version, Writer: c.log.writer, Seq: c.seq, Hash: c.prev, At: c.at, Closed: closed})
	if err != nil {
		return fmt.Errorf("encoding the head of the audit chain: %w", err)
	}
	if err := c.log.store.putHead(ctx, c.log.writer, body); err != nil {
		return err
	}
	c.headSeq = c.seq
	return nil
}

// finish stores the last head and fails the waiters, because no more entries are stored.
func (c *chain) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	c.log.ended.Store(true)
	if err := c.keepHead(ctx, true); err != nil {
		c.log.log.Error("the audit chain could not be closed; its end cannot be checked", "error", err)
	}
	lost := 0
	for i := range c.log.queue { // until Close closes it
		if i.stored == nil {
			lost++
			continue
		}
		i.stored <- schema.Errorf(schema.KindUnavailable, "The audit log stores no further records.")
	}
	if lost > 0 {
		c.log.log.Error("audit entries could not be stored and are lost", "count", lost)
	}
}
