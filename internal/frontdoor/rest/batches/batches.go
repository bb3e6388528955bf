package batches

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// jsonBatch is the maximum size of a batch in one JSON document. NDJSON has no limit.
	jsonBatch = 32 << 20
	// maxCustomID is the maximum length of a custom_id.
	maxCustomID = 256
	// resultsPage is the number of results that are read at once, and the default of limit.
	resultsPage = 1000
	// maxResults is the maximum of limit.
	maxResults = 1_000_000_000
	// minPriority and maxPriority limit the priority of a batch.
	minPriority, maxPriority = -10, 10
	// Limits of the labels of a batch.
	maxLabels, maxLabelName, maxLabelValue = 32, 64, 256
	// shownRefusals is the maximum number of refused lines in an answer. Each is also included in
	// the results.
	shownRefusals = 100
)

// Batch is the public view of a batch.
type Batch struct {
	ID        schema.BatchID    `json:"id" doc:"The id of the batch." example:"batch_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	State     string            `json:"state" enum:"receiving,running,canceling,completed,canceled,expired,failed" doc:"receiving: more calls can be added. running: calls run. canceling: it was canceled, and calls that were sent still run. The others are final."`
	Reason    string            `json:"reason,omitempty" doc:"The reason for the state, if it failed, expired or was canceled."`
	Calls     uint64            `json:"calls" doc:"The number of lines read so far, including refused ones."`
	Counts    BatchCounts       `json:"counts" doc:"The number of its calls in each state."`
	Priority  int               `json:"priority,omitempty" doc:"The priority; each step of 5 doubles its share of the capacity, or halves it. Absent: 0."`
	Labels    map[string]string `json:"labels,omitempty" doc:"The caller's own labels."`
	Created   time.Time         `json:"created" doc:"When the batch was created."`
	ExpiresAt time.Time         `json:"expires_at" doc:"When calls that were not sent to a worker expire."`
	Started   time.Time         `json:"started,omitzero" doc:"When its first call started; absent until then."`
	Ended     time.Time         `json:"ended,omitzero" doc:"When its last call ended; absent until then."`
	Forgotten bool              `json:"payloads_deleted,omitempty" doc:"Whether the arguments and results of its calls have been deleted, because the retention of its tenant has ended."`
	// Missing may be mistyped, or served by workers that have not started yet.
	Missing []schema.ServerID `json:"missing_servers,omitempty" doc:"Servers that waiting calls need and no worker has announced, the first 20 by name. Their calls wait 10 minutes for a worker, and then fail." example:"[\"evrything\"]"`
	// Refused and Refusals are only in answers to requests that send calls.
	Refused  uint64        `json:"refused,omitempty" doc:"The number of lines of this request that are not valid calls; only in the answer to a request that sends calls."`
	Refusals []LineRefusal `json:"refusals,omitempty" doc:"The first 100 refused lines of this request; the results list all of them."`
}

// BatchCounts is the number of calls in each state.
type BatchCounts struct {
	Waiting    uint64 `json:"waiting" doc:"Calls that are queued, held or running."`
	Held       uint64 `json:"held" doc:"Waiting calls that require approval. GET /batches/{id}/held lists them."`
	Succeeded  uint64 `json:"succeeded" doc:"Calls with a result, tool errors included."`
	ToolErrors uint64 `json:"tool_errors" doc:"Succeeded calls whose tool result is an error."`
	Failed     uint64 `json:"failed" doc:"Calls that were refused or failed."`
	Denied     uint64 `json:"denied" doc:"Calls that the policy, a scope or a person denied."`
	Expired    uint64 `json:"expired" doc:"Calls that were not approved or not sent to a worker in time."`
	Canceled   uint64 `json:"canceled" doc:"Calls that were canceled before they ran."`
	Unknown    uint64 `json:"unknown" doc:"Calls that were sent and whose outcome cannot be determined."`
}

// LineRefusal is a line that was refused because it is not a valid call.
type LineRefusal struct {
	Index    uint64 `json:"index" doc:"The position of the line in the batch, from 0."`
	CustomID string `json:"custom_id,omitempty" doc:"The caller's own id for the call, if it has one."`
	Detail   string `json:"detail" doc:"The fault and the fix."`
}

// BatchList is a page of batches.
type BatchList struct {
	Batches []Batch `json:"batches" nullable:"false" doc:"The batches, newest first."`
	Next    string  `json:"next,omitempty" doc:"The cursor of the next page; absent on the last page."`
}

// items returns the public view of batches of the tenant.
func (b *handlers) items(tenant schema.TenantID, page ...*batch.Manifest) []Batch {
	ids := make([]schema.BatchID, 0, len(page))
	for _, m := range page {
		if m.State != batch.Ended {
			ids = append(ids, m.ID)
		}
	}
	held := b.batches.Held(tenant, ids...)
	items := make([]Batch, 0, len(page))
	for _, m := range page {
		item := batchItem(m)
		item.Counts.Held = min(uint64(held[m.ID]), item.Counts.Waiting)
		items = append(items, item)
	}
	return items
}

func (b *handlers) item(m *batch.Manifest) *Batch { return &b.items(m.Principal.Tenant, m)[0] }

// View returns the JSON of GET /batches/{id}.
func View(m *batch.Manifest) []byte { return httpapi.EncodeInline(batchItem(m)) }

// batchItem returns the view of a batch without held calls.
func batchItem(m *batch.Manifest) Batch {
	c := m.Counts
	b := Batch{
		ID: m.ID, State: string(m.State), Reason: m.Reason, Calls: m.Calls, Priority: m.Priority, Labels: m.Labels, Created: m.Created, ExpiresAt: m.Expires,
		Started: m.Started, Ended: m.Ended, Forgotten: m.Forgotten, Missing: m.Missing,
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

// Options are the dependencies of the operations on batches. All are required.
type Options struct {
	Batches  *batch.Batches
	Calls    *calls.Calls
	Runner   *submit.Runner
	Problems *httpapi.Problems
	Log      *slog.Logger
	// Draining reports whether the front door is shutting down. Streams then end.
	Draining func() bool
	// Heartbeat is the interval at which a comment is sent on an idle event stream.
	Heartbeat time.Duration
}

// Register registers the operations on batches.
func Register(d *httpapi.Document, o Options) {
	(&handlers{
		batches: o.Batches, calls: o.Calls, runner: o.Runner, lines: lineReader{o.Calls.Limits()}, problems: o.Problems, log: o.Log, draining: o.Draining, heartbeat: o.Heartbeat,
	}).register(d)
}

// handlers are the operations on batches.
type handlers struct {
	batches   *batch.Batches
	calls     *calls.Calls
	runner    *submit.Runner
	lines     lineReader
	problems  *httpapi.Problems
	log       *slog.Logger
	draining  func() bool
	heartbeat time.Duration
}

func (b *handlers) register(d *httpapi.Document) {
	b.describe(d)
	d.Handle(b.opCreateBatch(d), b.create)
	httpapi.Get(d, openapi.Answers(opListBatches(), "A page of batches.", map[string]any{"batches": []any{exampleBatch()}, "next": "batch_06b2t8m3c0w3v2q5n7k9a1d4fz"}), b.list)
	httpapi.Get(d, openapi.Answers(opBatch(), "The batch.", exampleBatch()), b.show)
	httpapi.HandleValue(d, opAddCalls(), "The calls were stored.", exampleBatch(), b.addCalls)
	httpapi.Get(d, openapi.Answers(opSealBatch(), "The batch.", exampleBatch()), b.seal)
	d.Handle(opBatchResults(), b.results)
	d.Handle(opBatchEvents(d), b.events)
	httpapi.Get(d, openapi.Answers(opCancelBatch(), "The batch.", exampleBatch()), b.cancel)
	if b.calls.CanHold() {
		httpapi.Get(d, openapi.Answers(opHeldCalls(), "The calls.", exampleHeld()), b.heldCalls)
		httpapi.HandleValue(d, opConfirmCalls(d), "The outcome for each call.", map[string]any{"accepted": 1, "refused": []any{}}, b.confirmCalls)
	}
}

// lines reports whether the body has one call on each line.
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

// create serves POST /batches.
func (b *handlers) create(x *httpapi.Exchange, r *http.Request) error {
	order := batch.Order{Principal: x.Principal}
	var err error
	if order.Key, err = httpapi.IdempotencyKey(r); err != nil {
		return err
	}
	stream, open := x.Query.Get("stream") == "true", x.Query.Get("open") == "true"
	order.CallbackURL = x.Query.Get("callback_url")
	order.Priority = httpapi.Number(x.Query, "priority", 0)
	order.Life = time.Duration(httpapi.Number(x.Query, "expires_in", 0)) * time.Second
	var source callSource
	var sent *lineSource
	if lines(r.Header) {
		sent = b.newLineSource(x, r, order.Key != "")
		source = sent
		order.Fingerprint = httpapi.Fingerprint(r, nil) // the lines are compared after all of them have been read
	} else {
		body, err := x.ReadBody(r, jsonBatch)
		if err != nil {
			return err
		}
		order.Fingerprint = httpapi.Fingerprint(r, body)
		if source, err = b.lines.readBatch(body, &order, &open, &stream); err != nil {
			return err
		}
	}
	if err := b.calls.CheckCallback(order.CallbackURL, x.Principal.Tenant); err != nil {
		return err
	}
	order.Trace = x.Span.Trace().Parent
	m, replayed, err := b.batches.Create(r.Context(), order)
	if err != nil {
		return err
	}
	x.Span.Text(telemetry.KeyBatch, string(m.ID))
	x.Set("Location", "/batches/"+string(m.ID))
	if replayed {
		x.Set("Idempotency-Replayed", "true")
		if m.State != batch.Receiving || open {
			if sent != nil {
				if err := sent.compare(m.Lines); err != nil {
					return err
				}
			}
			return b.created(x, m, nil, stream, r)
		}
	}
	// Another request with the key may be sending the calls, even if this one created the batch.
	again := order.Key != ""
	options := takeOptions{seal: !open, again: again, from: -1}
	if stream {
		return b.takeAndStream(x, r, m, source, options)
	}
	taken, err := b.take(r.Context(), m.ID, x.Principal, source, options)
	if err != nil {
		if !again {
			b.endUnused(x, m.ID)
		}
		return err
	}
	return b.created(x, taken.m, taken, false, r)
}

// endUnused ends the new batch of a request that failed before it stored a call. Its caller got an error
// and sends a new batch, so this one would only count as open until it expires. A request with a key
// continues its batch when it is repeated.
func (b *handlers) endUnused(x *httpapi.Exchange, id schema.BatchID) {
	ctx, cancel := context.WithTimeout(context.Background(), lastFlush)
	defer cancel()
	m, err := b.batches.Get(ctx, id, x.Principal)
	if err == nil && m.Calls == 0 && m.State == batch.Receiving {
		_, err = b.batches.End(ctx, id, x.Principal, "the request that created it failed, and none of its calls was stored")
	}
	if err != nil {
		b.log.Warn("ending a batch without calls failed; it ends when it expires", "batch", id, "error", err)
	}
}

func (b *handlers) created(x *httpapi.Exchange, m *batch.Manifest, t *intakeResult, stream bool, r *http.Request) error {
	if stream {
		return b.streamResults(r.Context(), x, r, m.ID, batch.Cursor{}, true, 0)
	}
	item := b.item(m)
	if t != nil {
		item.Calls, item.Refused, item.Refusals = t.stored, t.refused, t.refusals
		if done := m.Counts.Total(); item.Calls > done {
			item.Counts.Waiting = item.Calls - done
		}
	}
	x.SendJSON(http.StatusCreated, httpapi.Encode(item))
	return nil
}

// addCalls serves POST /batches/{id}/calls: more lines for an open batch.
func (b *handlers) addCalls(x *httpapi.Exchange, r *http.Request) (*Batch, error) {
	if !lines(r.Header) {
		return nil, schema.Errorf(problem.KindMediaType, "The body must have one call on each line: send Content-Type: application/x-ndjson.")
	}
	id := schema.BatchID(r.PathValue("id"))
	from := int64(httpapi.Number(x.Query, "from", -1))
	t, err := b.take(r.Context(), id, x.Principal, b.newLineSource(x, r, false), takeOptions{from: from})
	if err != nil {
		return nil, err
	}
	item := b.item(t.m)
	item.Calls, item.Refused, item.Refusals = t.stored, t.refused, t.refusals
	return item, nil
}

// batchInput is the input of an operation on one batch.
type batchInput struct {
	ID schema.BatchID `path:"id"`
}

// listInput is the input of GET /batches.
type listInput struct {
	State  string `query:"state"`
	Limit  int    `query:"limit"`
	Cursor string `query:"cursor"`
}

// seal serves POST /batches/{id}/seal: no more calls will be added.
func (b *handlers) seal(ctx context.Context, in *batchInput) (*Batch, error) {
	who := httpapi.Of(ctx).Principal
	m, err := b.batches.Get(ctx, in.ID, who)
	if err != nil {
		return nil, err
	}
	if m.State == batch.Receiving {
		intake, err := b.batches.Intake(ctx, m.ID, who)
		if err != nil {
			return nil, err
		}
		defer intake.Close()
		if _, err = intake.Seal(ctx, ""); err != nil {
			return nil, err
		}
		if m, err = b.batches.Get(ctx, m.ID, who); err != nil { // its calls have been running since they were added
			return nil, err
		}
	}
	return b.item(m), nil
}

// show serves GET /batches/{id}.
func (b *handlers) show(ctx context.Context, in *batchInput) (*Batch, error) {
	m, err := b.batches.Get(ctx, in.ID, httpapi.Of(ctx).Principal)
	if err != nil {
		return nil, err
	}
	return b.item(m), nil
}

// cancel serves POST /batches/{id}/cancel.
func (b *handlers) cancel(ctx context.Context, in *batchInput) (*Batch, error) {
	m, err := b.batches.Cancel(ctx, in.ID, httpapi.Of(ctx).Principal)
	if err != nil {
		return nil, err
	}
	return b.item(m), nil
}

// batchStates maps the public names of states to the states of journals.
var batchStates = map[string]batch.Progress{
	"receiving": batch.Receiving, "running": batch.Running, "canceling": batch.Canceling, "ended": batch.Ended,
}

// list serves GET /batches.
func (b *handlers) list(ctx context.Context, in *listInput) (*BatchList, error) {
	var states []batch.Progress
	if in.State != "" {
		state := batchStates[in.State]
		if states = []batch.Progress{state}; state == batch.Running {
			states = append(states, batch.Sealed)
		}
	}
	page, next, err := b.batches.List(httpapi.Of(ctx).Principal, states, cmp.Or(in.Limit, httpapi.PageLimit), in.Cursor)
	if err != nil {
		return nil, err
	}
	return &BatchList{Batches: b.items(httpapi.Of(ctx).Principal.Tenant, page...), Next: next}, nil
}

// events serves GET /batches/{id}/events: the current batch, then the batch after each change,
// until it has ended.
func (b *handlers) events(x *httpapi.Exchange, r *http.Request) error {
	id := schema.BatchID(r.PathValue("id"))
	m, err := b.batches.Get(r.Context(), id, x.Principal)
	if err != nil {
		return err
	}
	n, last := 0, []byte(nil)
	changes := func() (<-chan struct{}, func()) { return b.batches.Changes(m.Principal.Tenant, id) }
	return httpapi.EventStream{Heartbeat: b.heartbeat, Draining: b.draining, Changes: changes, Tell: func(out *sse.Writer, why httpapi.TellReason) (bool, error) {
		if why != httpapi.First {
			if m, err = b.batches.Get(r.Context(), id, x.Principal); err != nil {
				return false, err
			}
		}
		now := httpapi.EncodeInline(b.item(m))
		if bytes.Equal(now, last) {
			return m.State != batch.Ended, nil
		}
		n++
		last = now
		return m.State != batch.Ended, out.Event("batch", strconv.Itoa(n), now)
	}}.Follow(x, r)
}
