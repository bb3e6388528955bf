package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/store/noticetable"
	"github.com/callyard/callyard/internal/store/outbox"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func rules(c settings.Notify) webhook.Rules {
	return webhook.Rules{AllowPrivate: c.AllowPrivate, AllowedHosts: c.AllowedHosts}
}

// Check returns the faults in the section that only the sender of the notifications can detect. The
// paths are relative to the section.
func Check(c settings.Notify) (faults []config.Fault) {
	if !c.Configured() {
		return nil
	}
	for i, u := range c.URLs {
		if fault := webhook.CheckURL(u, rules(c)); fault != nil {
			faults = append(faults, config.Faultf(fmt.Sprintf("urls[%d]", i), "%s", strings.TrimPrefix(fault.Detail, "The callback_url ")))
		}
		if slices.Contains(c.URLs[:i], u) {
			faults = append(faults, config.Faultf(fmt.Sprintf("urls[%d]", i), "is listed twice; remove one."))
		}
	}
	for i, e := range c.Events {
		if !slices.Contains(Types(), e) {
			faults = append(faults, config.Faultf(fmt.Sprintf("events[%d]", i), "must be one of %s.", strings.Join(Types(), ", ")))
		}
	}
	if _, err := secrets(c); err != nil {
		faults = append(faults, config.Faultf("secrets_file", "%v.", err))
	}
	return faults
}

func secrets(c settings.Notify) ([]string, error) {
	if c.SecretsFile == "" {
		return nil, errors.New("is missing: set it to a file with a line of whsec_ and 32 random bytes in base64")
	}
	return webhook.ReadSecrets(c.SecretsFile)
}

// notice records the events of one approval that were sent to one receiver.
type notice struct {
	Place    string            `json:"place"` // a hash of the receiver's URL, which may hold a secret
	Approval schema.ApprovalID `json:"approval"`
	Told     []string          `json:"told"` // event IDs
}

func noticeKey(n *notice) string { return bus.Token(n.Place) + "." + bus.Token(n.Approval) }

// lately limits the age of an ended approval for a receiver without a record of it. A receiver that
// is new in the configuration is not notified of approvals that ended long ago.
const lately = time.Hour

// Webhooks is the notification channel for HTTP receivers. It is safe for concurrent use.
type Webhooks struct {
	c      settings.Notify
	page   func(id schema.ApprovalID) string
	now    func() time.Time
	urls   map[string]string // by place
	book   *tenants.Book
	store  *outbox.Outbox
	sender *webhook.Sender
	marks  *bus.Table[notice]
}

var _ Channel = (*Webhooks)(nil)

// OpenWebhooks opens the outbox of events; ctx bounds the opening. page returns the address of an
// approval's page. book maps receivers to tenants. The caller must close the connection.
func OpenWebhooks(ctx context.Context, c settings.Notify, book *tenants.Book, conn *bus.Conn, page func(id schema.ApprovalID) string, log *slog.Logger) (*Webhooks, error) {
	signing, err := secrets(c)
	if err != nil {
		return nil, fmt.Errorf("approver.notify.secrets_file %w", err)
	}
	w := &Webhooks{c: c, page: page, now: time.Now, urls: make(map[string]string, len(c.URLs)), book: book}
	for _, u := range book.AllReceivers(c.URLs) {
		w.urls[placeOf(u)] = u
	}
	if w.marks, err = noticetable.Open(ctx, conn, noticeKey); err != nil {
		return nil, err
	}
	if w.store, err = outbox.OpenNotices(ctx, conn, webhook.KeepFor); err == nil {
		w.sender, err = webhook.Open(ctx, webhook.Options{Rules: rules(c), Store: w.store, Secrets: signing, Log: log})
	}
	if err != nil {
		w.marks.Close()
		return nil, err
	}
	return w, nil
}

// placeOf returns the place of a receiver.
func placeOf(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])[:32]
}

// Deliveries lists deliveries; see [webhook.Sender.Deliveries].
func (w *Webhooks) Deliveries(of schema.Tenants, dead bool) []webhook.Delivery {
	return w.sender.Deliveries(of, dead)
}

// Retry restarts a delivery that was given up; see [webhook.Sender.Retry].
func (w *Webhooks) Retry(ctx context.Context, of schema.Tenants, id string) (webhook.Delivery, error) {
	return w.sender.Retry(ctx, of, id)
}

// Close closes the outbox. Events not delivered by then are delivered after the next start.
func (w *Webhooks) Close(ctx context.Context) error {
	err := w.sender.Close(ctx)
	w.marks.Close()
	return err
}

// missing returns the events that have not been sent to a receiver.
func (w *Webhooks) missing(a *ledger.Approval, told []string, known bool) []event {
	if !known && a.State.Ended() && w.now().Sub(a.Ended) > lately {
		return nil
	}
	all := events(a, w.page(a.ID))
	return slices.DeleteFunc(all, func(e event) bool {
		return slices.Contains(told, e.id) || len(w.c.Events) > 0 && !slices.Contains(w.c.Events, e.told.Type)
	})
}

// Places implements [Channel].
func (w *Webhooks) Places(a *ledger.Approval) []string {
	if rule, err := approval.Rule(a); err != nil || len(rule.Groups) == 0 || a.Permission != "" {
		return nil
	}
	var places []string
	for _, url := range w.book.Receivers(a.Binding.Tenant, w.c.URLs) {
		place := placeOf(url)
		n, known := w.marks.Get(noticeKey(&notice{Place: place, Approval: a.ID}))
		if len(w.missing(a, n.Told, known)) > 0 {
			places = append(places, place)
		}
	}
	return places
}

// Show implements [Channel]. It adds the missing events to the outbox, which has its own retries,
// and records them.
func (w *Webhooks) Show(ctx context.Context, place string, a *ledger.Approval) error {
	key := noticeKey(&notice{Place: place, Approval: a.ID})
	n, revision, err := w.marks.Fresh(ctx, key)
	known := err == nil
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return err
	}
	missing := w.missing(a, n.Told, known)
	if len(missing) == 0 {
		return nil
	}
	n.Place, n.Approval = place, a.ID
	for _, e := range missing {
		// IDs are unique in the outbox, so each receiver needs its own.
		id := "evt_" + place[:8] + strings.TrimPrefix(e.id, "evt_")
		err := w.sender.Send(ctx, webhook.Message{ID: id, URL: w.urls[place], Tenant: a.Binding.Tenant, Event: e.told})
		if fault := schema.AsError(err); fault != nil {
			if !fault.Retryable {
				return &Never{fmt.Errorf("adding an event to the outbox: %w", err)}
			}
			return &Wait{For: max(fault.RetryAfter, time.Second), Err: err}
		}
		n.Told = append(n.Told, e.id)
	}
	if known {
		_, err = w.marks.Replace(ctx, n, revision)
	} else {
		_, err = w.marks.Create(ctx, n)
	}
	return err // on a conflict with another approver, its record is read at the retry
}
