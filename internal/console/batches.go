package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/schema"
)

// batchStates lists the states of a batch.
var batchStates = []string{"receiving", "running", "canceling", "completed", "canceled", "expired", "failed"}

// batchesPage lists the batches of the user's key.
type batchesPage struct {
	Batches []batchView
	State   string
	States  []string
	Older   string
}

// batchView is a batch with figures derived from its counts.
type batchView struct {
	B              callyard.Batch
	Ended, Percent int64
	Rate           string // calls per second since it started; empty if not known yet
	Left           string // the time left at this rate
	Open           bool
}

func viewBatch(b callyard.Batch, now time.Time) batchView {
	view := batchView{B: b, Ended: b.Calls - b.Counts.Waiting, Open: b.Ended == nil}
	if b.Calls > 0 {
		view.Percent = 100 * view.Ended / b.Calls
	}
	began, until := b.Created, now
	if b.Started != nil {
		began = *b.Started
	}
	if b.Ended != nil {
		until = *b.Ended
	}
	if took := until.Sub(began).Seconds(); took > 0 && view.Ended > 0 {
		rate := float64(view.Ended) / took
		view.Rate = significant(rate)
		if view.Open && b.Counts.Waiting > b.Counts.Held {
			view.Left = seconds(max(math.Round(float64(b.Counts.Waiting-b.Counts.Held)/rate), 1))
		}
	}
	return view
}

func (c callPages) batches(w http.ResponseWriter, r *http.Request, v Visit) error {
	q := r.URL.Query()
	limit := callRows
	page := batchesPage{State: q.Get("state"), States: batchStates}
	params := callyard.ListBatchesParams{Limit: &limit, Cursor: optional(q.Get("cursor"))}
	if slices.Contains(batchStates, page.State) {
		state := callyard.ListBatchesParamsState(page.State)
		params.State = &state
	}
	list, err := get[callyard.BatchList](r.Context(), c.Console, v, with(api.ListBatches, &params))
	if err != nil {
		return c.orKey(w, r, err)
	}
	for _, b := range list.Batches {
		page.Batches = append(page.Batches, viewBatch(b, c.o.Now()))
	}
	if next := text(list.Next); next != "" {
		page.Older = at(Root+"/batches", "state", page.State, "cursor", next)
	}
	return c.render(w, v, http.StatusOK, "batches", view{Title: "Batches", Here: Root + "/batches", Live: q.Get("cursor") == "", Page: page})
}

// failure is a group of calls of a batch that ended with the same error.
type failure struct {
	Kind, Detail string // Detail is that of the first call
	N            int
	First        string // ID of the first call
}

type batchPage struct {
	V        batchView
	Failures []failure
	Partial  bool   // only the first results were read
	Note     string // the reason why there are no failures
	Held     []callyard.HeldCall
	HeldMore int
	Together string // the address of the bulk review page for the held calls
	Retry    int64  // the number of failed calls that can be retried
	Once     string // deduplicates batches submitted twice from one page
	Token    string
	Done     string
	Results  string
}

const (
	// maxResults limits the number of results read to group the failures of a batch.
	maxResults = 2000
	maxHeld    = 20
	// failuresFor is the lifetime of the cached failures of a batch. All users share them, because
	// finding them reads many results.
	failuresFor = 10 * time.Second
)

func (c callPages) batch(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.URL.Query().Get("id")
	if id == "" {
		http.Redirect(w, r, Root+"/batches", http.StatusSeeOther)
		return nil
	}
	b, err := get[callyard.Batch](r.Context(), c.Console, v, with(api.GetBatch, id))
	if err != nil {
		return c.orKey(w, r, err)
	}
	page := batchPage{V: viewBatch(b, c.o.Now()), Token: v.Token(Root + "/batch"), Done: doneOf(r, v), Results: at(Root+"/batch/results", "id", id)}
	if n := b.Counts; n.Failed+n.Denied+n.Expired+n.Canceled+n.Unknown+n.ToolErrors > 0 {
		found, err := cachedFor(c.cache, v, "failures "+id, failuresFor, func() (failures, error) {
			return c.failures(r.Context(), v, id, b.Calls)
		})
		if page.Failures, page.Partial = found.groups, found.partial; err != nil {
			page.Note = "The failures could not be read; download the results."
		}
	}
	if b.Ended != nil {
		page.Retry, page.Once = min(b.Counts.Failed, maxRetried), rand.Text()
	}
	if b.Counts.Held > 0 {
		held, err := get[callyard.HeldCalls](r.Context(), c.Console, v, with(api.GetBatchHeld, id))
		if err != nil && schema.KindOf(err) != schema.KindForbidden {
			return err
		}
		page.Together = together(held.Calls)
		page.Held, page.HeldMore = held.Calls[:min(maxHeld, len(held.Calls))], max(0, len(held.Calls)-maxHeld)
	}
	return c.render(w, v, http.StatusOK, "batch", view{Title: "Batch " + id, Here: Root + "/batches", Live: page.V.Open, Page: page})
}

// MaxTogether is the maximum number of held calls on the bulk review page.
const MaxTogether = 50

// together returns the address of the bulk review page for the first of the held calls, or "" if
// fewer than two of them wait for an approval.
func together(held []callyard.HeldCall) string {
	ids := url.Values{}
	for _, h := range held {
		if h.By != callyard.HeldCallByCaller && len(ids["id"]) < MaxTogether {
			ids.Add("id", h.ApprovalID)
		}
	}
	if len(ids["id"]) < 2 {
		return ""
	}
	return "/review?" + ids.Encode()
}

// failures holds the groups of calls without a successful result.
type failures struct {
	groups  []failure
	partial bool // only the first results were read
}

// failures groups the unsuccessful results by error kind.
func (c callPages) failures(ctx context.Context, v Visit, id string, calls int64) (f failures, err error) {
	var groups []failure
	limit := maxResults
	a, err := c.ask(ctx, v, with2(api.GetBatchResults, id, &callyard.GetBatchResultsParams{Limit: &limit}))
	if err != nil {
		return f, err
	}
	read := 0
	for line := range bytes.Lines(a.body) {
		read++
		var result struct {
			CallID    string            `json:"call_id"`
			State     string            `json:"state"`
			ToolError bool              `json:"tool_error"`
			Problem   *callyard.Problem `json:"problem"`
		}
		if json.Unmarshal(line, &result) != nil || result.State == "succeeded" && !result.ToolError {
			continue
		}
		kind, detail := result.State, ""
		switch {
		case result.Problem != nil:
			kind, detail = strings.TrimPrefix(result.Problem.Type, "/problems/"), result.Problem.Detail
		case result.ToolError:
			kind = "tool-error"
		}
		i := slices.IndexFunc(groups, func(f failure) bool { return f.Kind == kind })
		if i < 0 {
			i, groups = len(groups), append(groups, failure{Kind: kind, Detail: detail, First: result.CallID})
		}
		groups[i].N++
	}
	slices.SortStableFunc(groups, func(a, b failure) int { return b.N - a.N })
	return failures{groups, read >= maxResults && int64(read) < calls}, nil
}

// actOnBatch cancels a batch, or retries its failed calls.
func (c callPages) actOnBatch(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.PostForm.Get("id")
	if r.PostForm.Get("do") == "retry" {
		return c.retryFailed(w, r, v, id)
	}
	if _, err := c.ask(r.Context(), v, with(api.CancelBatch, id)); err != nil {
		return err
	}
	c.acted(v, "cancel", "batch", id)
	http.Redirect(w, r, at(Root+"/batch", "id", id, "done", v.done("cancel")), http.StatusSeeOther)
	return nil
}

// results streams the results of a batch as a file download.
func (c callPages) results(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.URL.Query().Get("id")
	client, err := c.client(v)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The address of the front door is invalid: %w", err)
	}
	res, err := client.GetBatchResults(r.Context(), id, nil)
	if err != nil {
		return c.refusal(nil, nil, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := readAll(res.Body)
		return c.refusal(res, body, nil)
	}
	head := w.Header()
	head.Set("Content-Type", "application/x-ndjson")
	head.Set("Content-Disposition", `attachment; filename="`+url.PathEscape(id)+`.jsonl"`)
	return copyOut(w, res.Body)
}
