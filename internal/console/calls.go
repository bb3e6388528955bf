package console

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// callStates lists the states of a call, in the order of its life cycle.
var callStates = []string{"held", "queued", "running", "succeeded", "failed", "denied", "expired", "canceled", "unknown"}

// callRows is the number of calls per page.
const callRows = 50

// timeForms lists the accepted time formats of a filter. Browsers send the first.
var timeForms = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339, "2006-01-02 15:04", "2006-01-02"}

const timeRefusal = "Write a time as 2026-11-26T15:04, in UTC."

// callPages serves the pages of calls and batches.
type callPages struct{ *Console }

type callsPage struct {
	Server, Tool, State, Key, Tenant, Batch, Since, Until string
	States                                                []string
	Calls                                                 []callyard.CallRecord
	Others                                                bool   // the list may have calls of other principals
	NoKeys                                                bool   // the front door asks for no key, so that all calls are of one principal
	Older                                                 string // the address of the next page
	Short                                                 bool   // the page reached the end of a part of the log; the next page may have older calls
	First                                                 bool   // it is the newest page
	Any                                                   bool   // no filter is set, and there are no more calls
	Refusal                                               string
}

// calls lists calls, newest first: those of the user's key, those of the key named in the filter,
// or all calls of a tenant. The list has only the calls that the user's key may see.
func (c callPages) calls(w http.ResponseWriter, r *http.Request, v Visit) error {
	q := r.URL.Query()
	if id := strings.TrimSpace(q.Get("id")); id != "" {
		http.Redirect(w, r, at(Root+"/call", "id", id), http.StatusSeeOther)
		return nil
	}
	page := callsPage{Server: strings.TrimSpace(q.Get("server")), Tool: strings.TrimSpace(q.Get("tool")), State: q.Get("state"), Key: strings.TrimSpace(q.Get("key")), Tenant: strings.TrimSpace(q.Get("tenant")), Batch: q.Get("batch"), Since: q.Get("since"), Until: q.Get("until"), States: callStates, First: q.Get("cursor") == "", NoKeys: v.Key == ""}
	limit := callRows
	params := callyard.ListCallsParams{Server: optional(page.Server), Tool: optional(page.Tool), Tenant: optional(page.Tenant), Batch: optional(page.Batch), Cursor: optional(q.Get("cursor")), Limit: &limit}
	if slices.Contains(callStates, page.State) {
		params.State = []callyard.ListCallsParamsState{callyard.ListCallsParamsState(page.State)}
	}
	params.Since, params.Until, page.Refusal = periodOf(page.Since, page.Until)
	list := func() (callyard.CallList, error) {
		return get[callyard.CallList](r.Context(), c.Console, v, with(api.ListCalls, &params))
	}
	if page.Others = page.Tenant != "" || page.Key != ""; page.Others {
		params.Principal = optional(cmp.Or(page.Key, "*"))
	}
	found, err := list()
	if page.Others && schema.KindOf(err) == schema.KindForbidden { // the key may see only its own calls
		switch {
		case page.NoKeys && page.Key != "" && page.Key != "*":
			page.Refusal = "The front door asks for no key: all calls are of the same caller."
		case !page.NoKeys && page.Key != "":
			page.Refusal = "Your key may list its own calls only. To see those of others, use a key that was made over the API and has the scope calls:read:all, or a key with the role auditor, tenant-admin or platform-admin."
		}
		page.Others, params.Principal = false, nil
		found, err = list()
	}
	if err != nil {
		return c.orKey(w, r, err)
	}
	page.Calls = found.Calls
	page.Older = older(Root+"/calls", q, found.Next)
	page.Any = page.First && page.Older == "" && r.URL.RawQuery == ""
	page.Short = page.Older != "" && len(page.Calls) < callRows
	return c.render(w, v, http.StatusOK, "calls", view{Title: "Calls", Here: Root + "/calls", Live: page.First, Page: page})
}

// older sets next to the address of the next page, or "" if there is none. A page with few or no
// rows can still have a next page.
func older(path string, q url.Values, next *string) string {
	if text(next) == "" {
		return ""
	}
	q.Set("cursor", *next)
	return path + "?" + q.Encode()
}

// periodOf parses the time range of a filter. An empty time is returned as nil. refusal describes
// an invalid time.
func periodOf(since, until string) (from, to *time.Time, refusal string) {
	read := func(text string) *time.Time {
		at, ok := timeOf(text)
		if !ok && text != "" {
			refusal = timeRefusal
		}
		if !ok {
			return nil
		}
		return &at
	}
	from, to = read(since), read(until)
	return from, to, refusal
}

// timeOf parses a time of a filter. The default zone is UTC.
func timeOf(text string) (time.Time, bool) {
	for _, form := range timeForms {
		if t, err := time.Parse(form, strings.TrimSpace(text)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// event is a point on the timeline of a call.
type event struct {
	At    time.Time // zero if not known
	Label string
	After string // time since the previous event
	Note  string
	Tone  string
}

type callPage struct {
	C      callyard.Call
	R      *callyard.CallRecord // nil if there is no call record
	Events []event
	Result *resultView
	Trace  string // trace ID, or ""
	// TraceURL is the address of the trace, or "" if not known.
	TraceURL string
	Other    bool   // another principal made the call; only its record is shown
	At       string // the admission time in the address of the page, by which the record is found
	Open     bool   // not in a final state
	Settle   bool   // an operator must settle the outcome
	NoSettle bool   // the user's key cannot do so
	Again    bool   // another attempt can be started
	// Arguments are the caller's arguments. They are nil if they are not stored; the call can
	// then not be replayed.
	Arguments json.RawMessage
	Once      string // deduplicates replays submitted twice from one page
	Token     string
	Done      string
	Detail    string // detail of the problem
	Kind      string
	Faults    []schema.Fault
}

// call serves the page of one call.
func (c callPages) call(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.URL.Query().Get("id")
	if id == "" {
		http.Redirect(w, r, Root+"/calls", http.StatusSeeOther)
		return nil
	}
	a, err := c.ask(r.Context(), v, with2(api.GetCall, id, &callyard.GetCallParams{Include: new(callyard.GetCallParamsIncludeArguments)}))
	if schema.KindOf(err) == schema.KindNotFound {
		return c.callOfOther(w, r, v, id, err)
	}
	if err != nil {
		return c.orKey(w, r, err)
	}
	page := callPage{Token: v.Token(Root + "/call"), Done: doneOf(r, v), Once: rand.Text(), Arguments: rawjson.Get(a.body, "arguments")}
	if err := json.Unmarshal(a.body, &page.C); err != nil {
		return schema.Errorf(schema.KindUnavailable, "The answer of the front door cannot be read: %w", err)
	}
	if page.R, err = c.record(r.Context(), v, id, page.C.Created, &callyard.ListCallsParams{Server: &page.C.Server, Tool: optional(page.C.Tool)}); err != nil {
		return err
	}
	state := string(page.C.State)
	page.Open = isOpen(page.C.State)
	page.Again = page.C.GivenUp != nil && *page.C.GivenUp
	page.Settle = state == "unknown" && text(page.C.Settled) == "" && (page.R == nil || isDurable(page.R)) || page.Again
	page.NoSettle = page.Settle && !c.maySettle(r.Context(), v)
	if raw := rawjson.Get(a.body, "result"); raw != nil && string(raw) != "null" {
		page.Result = readResult(raw, false)
	}
	page.Events = timeLine(&page.C, page.R)
	page.Trace, page.TraceURL = c.traceOf(&page.C, page.R)
	switch {
	case page.C.Problem != nil:
		page.Detail, page.Kind = page.C.Problem.Detail, strings.TrimPrefix(page.C.Problem.Type, "/problems/")
	case page.R != nil && page.R.Error != nil:
		page.Detail, page.Kind = page.R.Error.Detail, page.R.Error.Kind
	}
	if page.Open || page.Result.HasImages() { // the result can arrive while the page is open
		allowImages(w)
	}
	return c.render(w, v, http.StatusOK, "call", view{Title: page.C.Tool + " on " + page.C.Server, Here: Root + "/calls", Live: page.Open, Page: page})
}

// isOpen reports whether a call has not ended.
func isOpen(state callyard.CallState) bool {
	return state == "held" || state == "queued" || state == "running"
}

// timeLine returns the events of a call in chronological order.
func timeLine(call *callyard.Call, record *callyard.CallRecord) []event {
	events := []event{{At: call.Created, Label: "Admitted"}}
	if len(call.Reasons) > 0 || call.ApprovalID != nil {
		events = append(events, event{Label: "Held for approval", Note: risk.JoinReasons(call.Reasons), Tone: "warning"})
	}
	for _, d := range call.Decisions {
		events = append(events, event{At: d.At, Label: label(d.Kind) + " by " + d.By, Note: text(d.Reason)})
	}
	if record != nil && record.Started != nil {
		note := ""
		if record.Attempt > 1 {
			note = "attempt " + ui.Number(record.Attempt)
		}
		events = append(events, event{At: *record.Started, Label: "Sent to the server", Note: note})
	}
	switch ended := call.Ended; {
	case ended != nil:
		e := event{At: *ended, Label: label(call.State), Tone: badgeClass(string(call.State))}
		if record != nil && record.TookMs != nil {
			e.Note = seconds(*record.TookMs/1000) + " at the server"
		}
		events = append(events, e)
	default:
		events = append(events, event{Label: "Now " + string(call.State), Tone: badgeClass(string(call.State))})
	}
	if call.Settled != nil {
		events = append(events, event{Label: "Settled", Note: *call.Settled})
	}
	for i := 1; i < len(events); i++ {
		if before, at := events[i-1].At, events[i].At; !before.IsZero() && !at.IsZero() && !at.Before(before) {
			events[i].After = seconds(at.Sub(before).Seconds())
		}
	}
	return events
}

// actOnCall cancels a call, or settles its outcome.
func (c callPages) actOnCall(w http.ResponseWriter, r *http.Request, v Visit) error {
	f := r.PostForm
	id, act := f.Get("id"), f.Get("do")
	done := "settle"
	var send send
	switch act {
	case "cancel":
		done, send = "cancel", with(api.CancelCall, id)
	case "replay":
		return c.replay(w, r, v, id)
	case "done", "failed", "run-again":
		if act == "run-again" {
			done = act
		}
		body := callyard.SettleRequest{As: callyard.SettleRequestAs(act), Reason: strings.TrimSpace(f.Get("reason"))}
		send = with2(api.SettleCall, id, body)
	default:
		return schema.Errorf(schema.KindInvalidRequest, "Select what to do with the call.")
	}
	if _, err := c.ask(r.Context(), v, send); err != nil {
		return err
	}
	c.acted(v, act, "call", id)
	http.Redirect(w, r, at(Root+"/call", "id", id, "at", f.Get("at"), "done", v.done(done)), http.StatusSeeOther)
	return nil
}

// replay makes a new call with the arguments of an earlier one and shows its page. The new call is
// stored, so that the page can show the result.
func (c callPages) replay(w http.ResponseWriter, r *http.Request, v Visit, id string) error {
	prefer := "respond-async"
	params := callyard.ReplayCallParams{Prefer: &prefer, IdempotencyKey: onceKey(r.PostForm.Get("once"), id)}
	a, err := c.ask(r.Context(), v, with2(api.ReplayCall, id, &params))
	if err != nil {
		return err
	}
	c.acted(v, "replay", "call", id, "new", a.callID)
	http.Redirect(w, r, at(Root+"/call", "id", a.callID, "done", v.done("replay")), http.StatusSeeOther)
	return nil
}
