package rest

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// jsonBatch is the most that a batch in one JSON document may take; NDJSON has
	// no end.
	jsonBatch = 32 << 20
	// maxCustomID bounds the caller's own name of a call.
	maxCustomID = 256
	// resultsPage is how many results are read at once, and the default of limit.
	resultsPage = 1000
	// pageLimit is how many calls or batches are on a page, maxPageLimit the most of them.
	pageLimit, maxPageLimit = 100, 1000
	// maxResults is the most results that limit can ask for.
	maxResults = 1_000_000_000
	// minPriority and maxPriority bound what a batch may say of its share.
	minPriority, maxPriority = -10, 10
	// Bounds of the labels of a batch.
	maxLabels, maxLabelName, maxLabelValue = 32, 64, 256
	// shownRefusals is how many refused lines an answer lists; each has its place
	// among the results as well.
	shownRefusals = 100
)

// Batch is a batch as callers see it.
type Batch struct {
	ID        string            `json:"id" example:"batch_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	State     string            `json:"state" enum:"receiving,running,canceling,completed,canceled,expired,failed"`
	Reason    string            `json:"reason,omitempty"`
	Calls     uint64            `json:"calls" doc:"How many lines were taken so far, refused ones included."`
	Counts    BatchCounts       `json:"counts"`
	Priority  int               `json:"priority,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Created   time.Time         `json:"created"`
	ExpiresAt time.Time         `json:"expires_at"`
	Started   time.Time         `json:"started,omitzero"`
	Ended     time.Time         `json:"ended,omitzero"`
	// Refused and Refusals are in answers to those who send calls.
	Refused  uint64        `json:"refused,omitempty" doc:"How many lines of this request were no calls."`
	Refusals []LineRefusal `json:"refusals,omitempty" doc:"The first of them; every one has its place among the results."`
}

// BatchCounts says how many calls are in which state.
type BatchCounts struct {
	Waiting    uint64 `json:"waiting" doc:"Queued, held or running."`
	Held       uint64 `json:"held" doc:"Of those that wait: somebody must say yes first. GET /batches/{id}/held lists them."`
	Succeeded  uint64 `json:"succeeded"`
	ToolErrors uint64 `json:"tool_errors" doc:"Of those that succeeded: the tool answered with its own error."`
	Failed     uint64 `json:"failed"`
	Denied     uint64 `json:"denied"`
	Expired    uint64 `json:"expired"`
	Canceled   uint64 `json:"canceled"`
	Unknown    uint64 `json:"unknown"`
}

// LineRefusal is a line that was no call.
type LineRefusal struct {
	Index    uint64 `json:"index"`
	CustomID string `json:"custom_id,omitempty"`
	Detail   string `json:"detail"`
}

// BatchList is a page of batches.
type BatchList struct {
	Batches []Batch `json:"batches" nullable:"false"`
	Next    string  `json:"next,omitempty" doc:"The cursor of the next page."`
}

// batchItems returns the batches as callers see them.
func (a *API) batchItems(page ...*batch.Manifest) []Batch {
	ids := make([]string, 0, len(page))
	for _, m := range page {
		if m.State != batch.Ended {
			ids = append(ids, m.ID)
		}
	}
	held := a.o.Batches.Held(ids...)
	items := make([]Batch, 0, len(page))
	for _, m := range page {
		item := batchItem(m)
		item.Counts.Held = min(uint64(held[m.ID]), item.Counts.Waiting)
		items = append(items, item)
	}
	return items
}

func (a *API) batchItem(m *batch.Manifest) Batch { return a.batchItems(m)[0] }

// batchItem is for a batch of which nothing is held.
func batchItem(m *batch.Manifest) Batch {
	c := m.Counts
	b := Batch{
		ID: m.ID, State: string(m.State), Reason: m.Reason, Calls: m.Calls, Priority: m.Priority, Labels: m.Labels, Created: m.Created, ExpiresAt: m.Expires,
		Started: m.Started, Ended: m.Ended,
		Counts: BatchCounts{
			Succeeded: c.Succeeded, ToolErrors: c.ToolErrors, Failed: c.Failed + c.Dead, Denied: c.Denied, Expired: c.Expired, Canceled: c.Canceled, Unknown: c.Unknown,
		},
	}
	if m.State == batch.Sealed {
		b.State = string(batch.Running)
	}
	if m.State == batch.Ended {
		b.State = string(m.Ending)
	}
	if done := c.Total(); m.Calls > done {
		b.Counts.Waiting = m.Calls - done
	}
	return b
}

func (a *API) registerBatches() {
	if a.o.Batches == nil {
		return
	}
	a.raw(a.opCreateBatch(), "/batches", a.createBatch)
	a.raw(a.opListBatches(), "/batches", a.listBatches)
	a.raw(a.opBatch(), "/batches/{id}", a.showBatch)
	a.raw(a.opAddCalls(), "/batches/{id}/calls", a.addCalls)
	a.raw(a.opSealBatch(), "/batches/{id}/seal", a.sealBatch)
	a.raw(a.opBatchResults(), "/batches/{id}/results", a.batchResults)
	a.raw(a.opBatchEvents(), "/batches/{id}/events", a.batchEvents)
	a.raw(a.opCancelBatch(), "/batches/{id}/cancel", a.cancelBatch)
	if a.o.Calls.CanHold() {
		a.raw(a.opHeldCalls(), "/batches/{id}/held", a.heldCalls)
		a.raw(a.opConfirmCalls(), "/confirmations", a.confirmCalls)
	}
}

// lines says that the body is one call on each line.
func lines(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return false
	}
	switch media {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-lines":
		return true
	}
	return false
}

// createBatch is POST /batches.
func (a *API) createBatch(x *exchange, r *http.Request) error {
	order := batch.Order{Principal: x.principal}
	var err error
	if order.Key, err = idempotencyKey(r); err != nil {
		return err
	}
	stream, open := x.query.Get("stream") == "true", x.query.Get("open") == "true"
	order.CallbackURL = x.query.Get("callback_url")
	order.Priority = number(x.query, "priority", 0)
	order.Life = time.Duration(number(x.query, "expires_in", 0)) * time.Second
	var source callSource
	if lines(r.Header) {
		source = a.newLineSource(x, r)
		order.Fingerprint = fingerprint(r, nil) // the lines are not known yet
	} else {
		body, err := a.readBody(x, r, jsonBatch)
		if err != nil {
			return err
		}
		order.Fingerprint = fingerprint(r, body)
		if source, err = a.readBatch(body, &order, &open, &stream); err != nil {
			return err
		}
	}
	if err := a.o.Calls.CheckCallback(order.CallbackURL); err != nil {
		return err
	}
	order.Trace = x.span.Trace().Parent
	m, replayed, err := a.o.Batches.Create(r.Context(), order)
	if err != nil {
		return err
	}
	x.span.Text(telemetry.KeyBatch, m.ID)
	x.set("Location", "/batches/"+m.ID)
	if replayed {
		x.set("Idempotency-Replayed", "true")
		if m.State != batch.Receiving || open {
			return a.handle201(x, m, nil, stream, r)
		}
	}
	// Another request with the key may send the calls, even where this one made the batch.
	again := order.Key != ""
	if stream {
		return a.takeAndStream(x, r, m, source, again)
	}
	taken, err := a.take(r.Context(), m.ID, x.principal, source, takeOptions{seal: !open, again: again, from: -1})
	if err != nil {
		return err
	}
	return a.handle201(x, taken.m, taken, false, r)
}

func (a *API) handle201(x *exchange, m *batch.Manifest, t *taken, stream bool, r *http.Request) error {
	if stream {
		return a.streamResults(r.Context(), x, m.ID, batch.Cursor{}, true, 0)
	}
	item := a.batchItem(m)
	if t != nil {
		item.Calls, item.Refused, item.Refusals = t.stored, t.refused, t.refusals
		if done := m.Counts.Total(); item.Calls > done {
			item.Counts.Waiting = item.Calls - done
		}
	}
	x.send(http.StatusCreated, a.fixed.json, encode(item))
	return nil
}

// addCalls is POST /batches/{id}/calls: more lines for a batch that is open.
func (a *API) addCalls(x *exchange, r *http.Request) error {
	if !lines(r.Header) {
		return schema.Errorf(kindMediaType, "The calls must come one on each line: send Content-Type: application/x-ndjson.")
	}
	id := r.PathValue("id")
	from := int64(number(x.query, "from", -1))
	t, err := a.take(r.Context(), id, x.principal, a.newLineSource(x, r), takeOptions{from: from})
	if err != nil {
		return err
	}
	item := a.batchItem(t.m)
	item.Calls, item.Refused, item.Refusals = t.stored, t.refused, t.refusals
	x.send(http.StatusOK, a.fixed.json, encode(item))
	return nil
}

// sealBatch is POST /batches/{id}/seal: there will be no more calls.
func (a *API) sealBatch(x *exchange, r *http.Request) error {
	m, err := a.o.Batches.Batch(r.Context(), r.PathValue("id"), x.principal)
	if err != nil {
		return err
	}
	if m.State == batch.Receiving {
		in, err := a.o.Batches.Intake(r.Context(), m.ID, x.principal)
		if err != nil {
			return err
		}
		defer in.Close()
		if m, err = in.Seal(r.Context()); err != nil {
			return err
		}
	}
	x.send(http.StatusOK, a.fixed.json, encode(a.batchItem(m)))
	return nil
}

func (a *API) showBatch(x *exchange, r *http.Request) error {
	m, err := a.o.Batches.Batch(r.Context(), r.PathValue("id"), x.principal)
	if err != nil {
		return err
	}
	x.send(http.StatusOK, a.fixed.json, encode(a.batchItem(m)))
	return nil
}

func (a *API) cancelBatch(x *exchange, r *http.Request) error {
	m, err := a.o.Batches.Cancel(r.Context(), r.PathValue("id"), x.principal)
	if err != nil {
		return err
	}
	x.send(http.StatusOK, a.fixed.json, encode(a.batchItem(m)))
	return nil
}

// batchStates maps the words of callers to the states of journals.
var batchStates = map[string]batch.Progress{
	"receiving": batch.Receiving, "running": batch.Running, "canceling": batch.Canceling, "ended": batch.Ended,
}

// listBatches is GET /batches.
func (a *API) listBatches(x *exchange, r *http.Request) error {
	var states []batch.Progress
	if x.query.Has("state") {
		state := batchStates[x.query.Get("state")]
		if states = []batch.Progress{state}; state == batch.Running {
			states = append(states, batch.Sealed)
		}
	}
	page, next := a.o.Batches.Batches(x.principal, states, number(x.query, "limit", pageLimit), x.query.Get("cursor"))
	list := BatchList{Batches: a.batchItems(page...), Next: next}
	x.send(http.StatusOK, a.fixed.json, encode(list))
	return nil
}

// batchEvents is GET /batches/{id}/events: the batch as it is, then after each
// change, until it has ended.
func (a *API) batchEvents(x *exchange, r *http.Request) error {
	id := r.PathValue("id")
	m, err := a.o.Batches.Batch(r.Context(), id, x.principal)
	if err != nil {
		return err
	}
	out := newEvents(x)
	defer out.End()
	if r.Method == http.MethodHead {
		out.Begin() // there is no body to wait for
		return nil
	}
	changed, stop := a.o.Batches.Changes(id)
	defer stop()
	beat := time.NewTicker(a.o.Heartbeat)
	defer beat.Stop()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	n, last := 0, ""
	say := func() error {
		text := strings.TrimSuffix(string(encode(a.batchItem(m))), "\n")
		if text == last {
			return nil
		}
		n++
		last = text
		return out.Event("batch", strconv.Itoa(n), []byte(text))
	}
	for err = say(); err == nil && m.State != batch.Ended; {
		select {
		case <-r.Context().Done():
			return nil
		case <-changed:
			if m, err = a.o.Batches.Batch(r.Context(), id, x.principal); err == nil {
				err = say()
			}
		case <-beat.C:
			err = out.Beat()
		case <-look.C:
			if a.o.Draining() {
				return nil
			}
			if m, err = a.o.Batches.Batch(r.Context(), id, x.principal); err == nil {
				err = say()
			}
		}
	}
	return nil
}
