package frontdoor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/outbox"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

// told is how many ends may wait to be put into the outbox; more wait at their
// source.
const told = 1024

// messageTimeout bounds the writing and storing of one message.
const messageTimeout = 20 * time.Second

// notifier puts the ends of calls and batches into the outbox of webhooks.
type notifier struct {
	d      *FrontDoor
	sender *webhook.Sender
	store  *outbox.Outbox
	ends   chan batch.End
	held   chan schema.ApprovalID // ids of approvals that ended
	stop   chan struct{}
	done   sync.WaitGroup
}

// openNotifier opens the outbox, where webhooks are configured.
func (d *FrontDoor) openNotifier(ctx context.Context) error {
	w := d.o.Webhooks
	if w.SecretsFile == "" {
		return nil
	}
	secrets, err := webhook.ReadSecrets(w.SecretsFile)
	if err != nil {
		return fmt.Errorf("webhooks.secrets_file %w", err)
	}
	t := &notifier{d: d, ends: make(chan batch.End, told), held: make(chan schema.ApprovalID, told), stop: make(chan struct{})}
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

// start begins to tell; it needs the API, which says what a call looks like.
func (t *notifier) start() {
	t.done.Go(t.run)
	t.done.Go(t.runHeld)
}

// close tells what is known and ends the outbox; what is not delivered by then is
// delivered by others, or after a restart.
func (t *notifier) close(ctx context.Context) {
	close(t.stop)
	close(t.ends)
	t.done.Wait()
	if err := t.sender.Close(ctx); err != nil {
		t.d.o.Log.Warn("closing the webhook outbox failed", "error", err)
	}
}

// ended is told of an end; it waits while the outbox takes no more.
func (t *notifier) ended(e batch.End) {
	if e.Batch != nil && e.Batch.CallbackURL == "" {
		return
	}
	t.ends <- e
}

func (t *notifier) run() {
	for e := range t.ends {
		ctx, cancel := context.WithTimeout(context.Background(), messageTimeout)
		m, err := t.message(ctx, e)
		if err == nil {
			err = t.sender.Send(ctx, m)
		}
		cancel()
		if err != nil {
			t.d.o.Log.Warn("a webhook could not be added to the outbox", "call", e.CallID, "journal", e.Journal, "error", err)
		}
	}
}

const (
	// tellEvery is how often ends of held calls are looked for that nobody told of:
	// whoever should have is gone.
	tellEvery = 15 * time.Second
	// tellTurn spreads the front doors, so that mostly one of them tells.
	tellTurn = time.Second
)

// runHeld tells of the ends of calls that were held. Every front door sees them;
// the first one that has its turn tells, and notes it in the ledger.
func (t *notifier) runHeld() {
	defer t.d.calls.WatchCallbacks(func(id schema.ApprovalID) {
		select {
		case t.held <- id:
		default: // the next look finds it
		}
	})()
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		if !first {
			select {
			case <-t.stop:
				return
			case id := <-t.held:
				if !sleep.For(rand.N(tellTurn), t.stop) {
					return
				}
				t.tellHeld(id)
				continue
			case <-tick.C:
			}
		}
		for _, id := range t.d.calls.DueCallbacks(tellEvery) {
			t.tellHeld(id)
		}
	}
}

func (t *notifier) tellHeld(id schema.ApprovalID) {
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

// message says what a receiver is told of an end. Its id is that of the call or
// batch, so that whoever tells it twice tells the same.
func (t *notifier) message(ctx context.Context, e batch.End) (webhook.Message, error) {
	if e.Batch != nil {
		return webhook.Message{ID: string(e.Batch.ID), URL: e.Batch.CallbackURL, Tenant: e.Batch.Principal.Tenant, Event: webhook.Event{Type: webhook.BatchEnded, Time: e.Batch.Ended, Data: batches.View(e.Batch)}}, nil
	}
	return t.callMessage(ctx, calls.OfEnd(e), e.Call.CallbackURL)
}

// callMessage says what a receiver is told of a call that ended.
func (t *notifier) callMessage(ctx context.Context, s *calls.Status, url string) (webhook.Message, error) {
	view, result, err := t.d.api.CallView(ctx, s)
	if err != nil {
		return webhook.Message{}, err
	}
	return webhook.Message{ID: string(s.ID), URL: url, Tenant: s.Tenant, Event: webhook.CallEvent(webhook.CallEnd{
		State: string(s.State), Time: s.Ended, View: view, Result: result, ResultURL: "/calls/" + string(s.ID),
	})}, nil
}
