package frontdoor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/outbox"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

// maxPendingEnds is the number of ends that may wait for the outbox. Others wait at their source.
const maxPendingEnds = 1024

// messageTimeout is the timeout of building and storing one message.
const messageTimeout = 20 * time.Second

// notifier adds the ends of calls and batches to the outbox of webhooks.
type notifier struct {
	d      *FrontDoor
	sender *webhook.Sender
	store  *outbox.Outbox
	ends   chan batch.End
	held   chan schema.ApprovalID // IDs of approvals that ended
	full   fullReceivers          // used by run only
	stop   chan struct{}
	done   sync.WaitGroup
}

// openNotifier opens the outbox, if webhooks are configured.
func (d *FrontDoor) openNotifier(ctx context.Context) error {
	w := d.o.Webhooks
	if w.SecretsFile == "" {
		return nil
	}
	secrets, err := webhook.ReadSecrets(w.SecretsFile)
	if err != nil {
		return fmt.Errorf("webhooks.secrets_file %w", err)
	}
	t := &notifier{d: d, ends: make(chan batch.End, maxPendingEnds), held: make(chan schema.ApprovalID, maxPendingEnds), stop: make(chan struct{})}
	if t.store, err = outbox.Open(ctx, d.o.Stored, webhook.KeepFor); err != nil {
		return err
	}
	t.sender, err = webhook.Open(ctx, webhook.Options{
		Rules: webhook.Rules{AllowPrivate: w.AllowPrivate, AllowedHosts: w.AllowedHosts}, Store: t.store, Secrets: secrets, DataKeys: d.o.DataKeys, Retention: d.o.Tenants.Retentions(), Log: d.o.Log,
		Count: func(o webhook.Outcome) { d.o.Metrics.Webhook(string(o)) },
	})
	if err != nil {
		return err
	}
	d.notifier = t
	return nil
}

// start starts the notifications. It needs the API, which encodes calls.
func (t *notifier) start() {
	t.done.Go(t.run)
	t.done.Go(t.runHeld)
}

// close adds all known ends and closes the outbox. Messages that were not delivered are
// delivered by other front doors, or after a restart. t.stop must be closed.
func (t *notifier) close(ctx context.Context) {
	close(t.ends)
	t.done.Wait()
	if err := t.sender.Close(ctx); err != nil {
		t.d.o.Log.Warn("closing the webhook outbox failed", "error", err)
	}
}

// ended accepts an end. It blocks while the outbox is full.
func (t *notifier) ended(e batch.End) {
	if e.Batch != nil && e.Batch.CallbackURL == "" {
		return
	}
	t.ends <- e
}

func (t *notifier) run() {
	again := time.NewTicker(fullAgain)
	defer again.Stop()
	for stop := t.stop; ; {
		select {
		case e, more := <-t.ends:
			if !more {
				return
			}
			t.take(e)
		case <-again.C:
			t.takeFull()
		case <-stop:
			t.takeFull()
			stop = nil
		}
	}
}

// take adds the message about an end to the outbox. If the queue of its receiver is full, take returns true and
// keeps the end for takeFull.
func (t *notifier) take(e batch.End) (full bool) {
	ok, full := t.keep(e)
	if full {
		if t.running() && t.full.add(e) {
			return true
		}
		t.d.o.Log.Warn("a webhook could not be added to the outbox: too many wait for its receiver", "call", e.CallID, "journal", e.Journal)
		ok = t.running() // otherwise the next owner of the journal adds it
	}
	if e.Stored != nil {
		e.Stored(ok)
	}
	return full
}

// running reports whether this front door does not stop yet.
func (t *notifier) running() bool {
	select {
	case <-t.stop:
		return false
	default:
		return true
	}
}

// takeFull takes the ends again whose receivers had a full queue.
func (t *notifier) takeFull() {
	ends, full := t.full.ends, map[string]bool{}
	t.full = fullReceivers{}
	for _, e := range ends {
		if url := callbackOf(e); !full[url] || !t.full.add(e) {
			full[url] = t.take(e)
		}
	}
}

const (
	// fullAgain is the interval at which ends are taken again whose receivers had a full queue. fullBytes
	// limits their memory; further ends are lost.
	fullAgain = 5 * time.Second
	fullBytes = 32 << 20
)

// fullReceivers holds the ends whose receivers have a full queue.
type fullReceivers struct {
	ends  []batch.End
	bytes int
}

// add adds an end, without what its message does not need, if there is memory.
func (f *fullReceivers) add(e batch.End) bool {
	size := 1 << 10
	if e.Call != nil {
		c := *e.Call
		c.Arguments, c.Extra = nil, nil
		e.Call = &c
		size += len(e.Result.Body) + len(e.Result.Error)
	}
	if f.bytes+size > fullBytes {
		return false
	}
	f.ends, f.bytes = append(f.ends, e), f.bytes+size
	return true
}

func callbackOf(e batch.End) string {
	if e.Batch != nil {
		return e.Batch.CallbackURL
	}
	return e.Call.CallbackURL
}

// keep adds the message about an end to the outbox. ok is false if NATS did not store it before this front door
// stopped. full is set if too many messages wait for its receiver.
func (t *notifier) keep(e batch.End) (ok, full bool) {
	for n := 0; ; n++ {
		again, err := t.add(e)
		if err == nil {
			return true, false
		}
		log := t.d.o.Log.With("call", e.CallID, "journal", e.Journal, "error", err)
		switch {
		case !again && schema.AsError(err).Retryable:
			return false, true
		case !again:
			log.Warn("a webhook could not be added to the outbox")
			return true, false
		case n == 0:
			log.Warn("a webhook could not be added to the outbox; it is tried again until NATS stores it")
		}
		if !sleep.For(addAgain.Delay(n), t.stop) {
			log.Warn("a webhook could not be added to the outbox before this front door stopped")
			return false, false
		}
	}
}

// addAgain is the backoff between the attempts to add a message to the outbox.
var addAgain = backoff.Policy{First: 100 * time.Millisecond, Max: 2 * time.Second}

// add adds the message about an end to the outbox. again reports whether NATS could not be read or
// written, so that the message must be added later.
func (t *notifier) add(e batch.End) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), messageTimeout)
	defer cancel()
	m, err := t.message(ctx, e)
	if err != nil {
		return schema.KindOf(err) == schema.KindUnavailable, err
	}
	err = t.sender.Send(ctx, m)
	return errors.Is(err, webhook.ErrNotStored), err
}

const (
	// notifyEvery is the interval at which the notifier looks for ends of held calls without a
	// notification, because the front door responsible for it has stopped.
	notifyEvery = 15 * time.Second
	// maxNotifyDelay is the maximum random delay of a front door, so that usually only one of them
	// sends.
	maxNotifyDelay = time.Second
)

// runHeld adds the ends of held calls. Every front door sees them. The first one after its random
// delay adds the message and records that in the ledger.
func (t *notifier) runHeld() {
	defer t.d.calls.WatchCallbacks(func(id schema.ApprovalID) {
		select {
		case t.held <- id:
		default: // the next check finds it
		}
	})()
	tick := time.NewTicker(notifyEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		if !first {
			select {
			case <-t.stop:
				return
			case id := <-t.held:
				if !sleep.For(rand.N(maxNotifyDelay), t.stop) {
					return
				}
				t.notifyHeld(id)
				continue
			case <-tick.C:
			}
		}
		for _, id := range t.d.calls.DueCallbacks(notifyEvery) {
			t.notifyHeld(id)
		}
	}
}

func (t *notifier) notifyHeld(id schema.ApprovalID) {
	ctx, cancel := context.WithTimeout(context.Background(), messageTimeout)
	defer cancel()
	err := t.d.calls.TellCallback(ctx, id, func(s *calls.Status, url string) error {
		m, err := t.callMessage(ctx, s, url)
		if err != nil {
			return err
		}
		return t.sender.Send(ctx, m)
	})
	if err != nil {
		t.d.o.Log.Warn("the end of a held call could not be added to the outbox; it is tried again", "approval", id, "error", err)
	}
}

// message builds the message about an end. Its ID is that of the call or batch, so that a message
// that is added twice has the same ID.
func (t *notifier) message(ctx context.Context, e batch.End) (webhook.Message, error) {
	if e.Batch != nil {
		return webhook.Message{ID: string(e.Batch.ID), URL: e.Batch.CallbackURL, Tenant: e.Batch.Principal.Tenant, Event: webhook.Event{Type: webhook.BatchEnded, Time: e.Batch.Ended, Data: batches.View(e.Batch)}}, nil
	}
	return t.callMessage(ctx, calls.OfEnd(e), e.Call.CallbackURL)
}

// callMessage builds the message about the end of a call.
func (t *notifier) callMessage(ctx context.Context, s *calls.Status, url string) (webhook.Message, error) {
	view, result, err := t.d.api.CallView(ctx, s)
	if err != nil {
		return webhook.Message{}, err
	}
	return webhook.Message{ID: string(s.ID), URL: url, Tenant: s.Tenant, Event: webhook.CallEvent(webhook.CallEnd{
		State: string(s.State), Time: s.Ended, View: view, Result: result, ResultURL: "/calls/" + string(s.ID),
	})}, nil
}
