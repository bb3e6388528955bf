package web

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static/style.css static/live.js static/icon.svg
var static embed.FS

// pages are the parsed templates, each with the frame around it.
type pages struct{ by map[string]*template.Template }

// difference is what a template shows of two texts.
type difference struct {
	Label string
	Lines []line
}

func parsePages() (*pages, error) {
	p := &pages{by: make(map[string]*template.Template)}
	funcs := template.FuncMap{
		"shown":   func(s any) template.HTML { return Shown([]byte(fmt.Sprint(s))) },
		"bytes":   Shown,
		"time":    func(t time.Time) template.HTML { return stamp(t, "2006-01-02 15:04:05 UTC") },
		"day":     func(t time.Time) template.HTML { return stamp(t, "2006-01-02 15:04 UTC") },
		"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"nth":     func(i int) int { return i + 1 },
		"wait":    wait,
		"number":  number,
		"level":   levelName,
		"plain":   func(s any) string { return Escaped([]byte(fmt.Sprint(s))) },
		"diff":    func(label string, lines []line) difference { return difference{label, lines} },
		"who":     func(name string) string { return strings.TrimPrefix(name, settings.NamePrefix) },
	}
	for _, name := range []string{"pending", "together", "outcomes", "history", "permissions", "detail", "signin", "message", "slack"} {
		t, err := template.New("frame.html").Funcs(funcs).ParseFS(templates, "templates/frame.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		p.by[name] = t
	}
	return p, nil
}

// view is what every page gets.
type view struct {
	Title   string
	Here    string // the path in the navigation
	Who     string
	Known   bool // signed in, or nobody needs to
	Local   bool
	SignOut string // form token; empty where there is nobody to sign out
	Now     time.Time
	Slack   bool   // there is a page to connect to it
	Go      string // where to go on at once; empty: nowhere
	Live    string // what the script does on a change: "list", "page" or nothing
	Page    any
}

func (h *Handler) registerPages() {
	h.html("GET /{$}", h.showPending)
	h.html("GET /together", h.showTogether)
	h.html("POST /together", h.takeTogether)
	h.html("GET /history", h.showHistory)
	h.html("GET /a/{id}", h.showDetail)
	h.html("POST /a/{id}/{kind}", h.takeDecision)
	h.html("POST /permissions/{id}/revoke", h.takeRevocation)
	h.html("GET /sign-in", h.showSignIn)
	h.html("POST /sign-in", h.takeSignIn)
	h.html("GET /sign-in/provider", h.goToProvider)
	h.html("GET "+settings.CallbackPath, h.comeBack)
	h.html("POST /sign-out", h.takeSignOut)
	h.registerSlack()
	h.handle("GET /events", h.events)
	h.handle("GET /static/{file}", h.serveStatic)
}

// html registers a page; its errors are shown as one.
func (h *Handler) html(route string, f func(http.ResponseWriter, *http.Request) error) {
	h.handle(route, func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			h.fault(r, err)
			h.showError(w, r, err)
		}
	})
}

func (h *Handler) render(w http.ResponseWriter, status int, name string, v visitor, page view) error {
	page.Known, page.Local, page.Who, page.Now = v.known, v.local, v.who.Name, h.o.Now()
	page.Slack = h.o.Slack != nil && !v.local
	if v.known && !v.local {
		page.SignOut = h.formToken(v.cookie, "/sign-out")
	}
	var b bytes.Buffer
	if err := h.pages.by[name].Execute(&b, page); err != nil {
		return schema.Errorf(schema.KindInternal, "The page cannot be made: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser went away; nobody is left to be told
	return nil
}

// message is a page that says one thing.
type message struct {
	Text   string
	Faults []schema.Fault
	To     string // where a link leads; empty: to the list
	Label  string
}

func (h *Handler) showError(w http.ResponseWriter, r *http.Request, err error) {
	d := problem.Of(err)
	v := visitor{cookie: h.cookie(r)} // no new cookie with an error
	if v.cookie != "" || h.unguarded() {
		v = h.visit(w, r)
	}
	page := view{Title: d.Title, Page: message{Text: d.Detail, Faults: d.Errors, To: "/", Label: "To the list"}}
	if renderErr := h.render(w, d.Status, "message", v, page); renderErr != nil {
		h.fault(r, renderErr)
		problem.Write(w, err)
	}
}

// enter finds out who looks; false when the answer is given already: a request to
// sign in.
func (h *Handler) enter(w http.ResponseWriter, r *http.Request) (visitor, bool, error) {
	if h.arriving(r) {
		return visitor{}, false, h.showArrival(w, r)
	}
	v := h.visit(w, r)
	if v.known {
		return v, true, nil
	}
	if r.Method == http.MethodPost {
		return v, false, schema.Errorf(schema.KindUnauthenticated, "Your session has ended; nothing was done. Sign in and repeat it.")
	}
	http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.Path), http.StatusSeeOther)
	return v, false, nil
}

func (h *Handler) arriving(r *http.Request) bool {
	return !h.unguarded() && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" &&
		h.cookie(r) == "" && !r.URL.Query().Has("arrived")
}

// showArrival leads on to the same page. A link of another site led here, so the
// browser kept the cookie back; from a page of ours it sends it.
func (h *Handler) showArrival(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	q.Set("arrived", "1")
	to := r.URL.Path + "?" + q.Encode()
	page := view{Title: "One moment", Go: to, Page: message{Text: "You come from another site.", To: to, Label: "Go on"}}
	return h.render(w, http.StatusOK, "message", visitor{}, page)
}

// showPending is the list of what waits.
func (h *Handler) showPending(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	return h.render(w, http.StatusOK, "pending", v, view{Title: "Pending approvals", Here: "/", Live: "list", Page: h.pendingOf(r.Context(), v.who)})
}

type pendingPage struct {
	Waiting []*question
	// Heaps are requesters of whom several calls can be decided together.
	Heaps []heap
	// Some says that anything can be decided at all.
	Some bool
}

// heap is what waits of one requester, and can be decided by the one who looks.
type heap struct {
	By string
	N  int
	To string
}

func (h *Handler) pendingOf(ctx context.Context, who schema.Principal) (p pendingPage) {
	last := make(map[[2]string]*ledger.Approval)
	counts := make(map[string]int)
	for _, a := range h.o.Ledger.Pending() {
		q, ok := h.see(a, who)
		if !ok {
			continue
		}
		if len(p.Waiting) < mostPeeks {
			q.Peek = h.peek(ctx, a)
		}
		tool := [2]string{a.Binding.Server, a.Binding.Tool}
		if _, ok := last[tool]; !ok {
			last[tool] = h.lastAllowed(a)
		}
		if l := last[tool]; l != nil {
			q.ToolChanged = l.Binding.ToolDefinitionDigest != a.Binding.ToolDefinitionDigest
		}
		p.Waiting = append(p.Waiting, q)
		if q.MayApprove() {
			counts[a.Binding.Requester.Name]++
			p.Some = true
		}
	}
	for _, by := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[by]; n > 1 {
			p.Heaps = append(p.Heaps, heap{By: by, N: min(n, maxTogether), To: "/together?" + url.Values{"requester": {by}}.Encode()})
		}
	}
	return p
}

type historyPage struct {
	Found  []past
	Next   string // the address of the next page
	State  string
	Server string
	Tool   string
	By     string
	States []ledger.State
}

// past is a row of the history.
type past struct {
	*question
	// Lines are what an edit made of the arguments, where that is short.
	Lines []line
}

// maxPastDiff is how many bytes of arguments are compared in a list.
const maxPastDiff = 64 << 10

// pastOf adds what an edit changed. What cannot be read, or is long, is on the
// page of the approval.
func (h *Handler) pastOf(ctx context.Context, q *question) past {
	p := past{question: q}
	if q.Edited == nil {
		return p
	}
	asked, err := h.o.Ledger.Asked(ctx, q.ID)
	if err != nil || len(asked) > maxPastDiff {
		return p
	}
	if edited, err := h.o.Ledger.Arguments(ctx, q.ID); err == nil && len(edited) <= maxPastDiff {
		p.Lines = comparedJSON(asked, edited)
	}
	return p
}

// showHistory is the list of everything, with filters.
func (h *Handler) showHistory(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	values := r.URL.Query()
	values.Del("arrived")
	for name, given := range values {
		if len(given) == 1 && given[0] == "" {
			values.Del(name) // a form sends what was left empty, too
		}
	}
	f, cursor, err := filterOf(values)
	if err != nil {
		return err
	}
	page := historyPage{Server: f.Server, Tool: f.Tool, By: f.Requester, States: ledger.States()}
	if len(f.States) > 0 {
		page.State = string(f.States[0])
	}
	f.Limit = min(f.Limit, pageLimit)
	found, next := h.list(f, cursor, v.who)
	for _, q := range found {
		page.Found = append(page.Found, h.pastOf(r.Context(), q))
	}
	if next != "" {
		values.Set("cursor", next)
		page.Next = "/history?" + values.Encode()
	}
	return h.render(w, http.StatusOK, "history", v, view{Title: "History", Here: "/history", Page: page})
}

// detailPage is one approval with its forms.
type detailPage struct {
	*question
	// Args would run now; Before was asked for, where it was edited since.
	Args, Before, Offer block
	EditLines           []line // what the edit changed
	Words               toolWords
	Fresh               bool // signed in lately enough for this rule
	Tokens              map[string]string
	Presets             []string
	Done                string
	Refusal             string // why the answer that was just given does not count
	Faults              []schema.Fault
	Reason              string // what was typed already
	Edit                string
	EditOpen, AllowOpen bool
}

// block is bytes on a page, raw and, where they are JSON, with line breaks.
type block struct {
	Label  string
	Raw    []byte
	Pretty []byte
	Digest string
	Open   bool
}

// openUpTo is how many bytes are shown without unfolding them.
const openUpTo = 16 << 10

func blockOf(label string, raw []byte, digest string) block {
	return block{Label: label, Raw: raw, Pretty: indented(raw), Digest: digest, Open: len(raw) <= openUpTo}
}

// toolWords are what a tool says of itself. Nobody checked it.
type toolWords struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Annotations struct {
		ReadOnly    *bool `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  *bool `json:"idempotentHint"`
		OpenWorld   *bool `json:"openWorldHint"`
	} `json:"annotations"`
}

// Claims are the annotations as sentences.
func (t toolWords) Claims() (claims []string) {
	for _, c := range []struct {
		hint    *bool
		yes, no string
	}{
		{t.Annotations.ReadOnly, "only reads", "changes things"}, {t.Annotations.Destructive, "may destroy", "destroys nothing"},
		{t.Annotations.Idempotent, "may be repeated", "must not be repeated"}, {t.Annotations.OpenWorld, "reaches the outside", "stays inside"},
	} {
		if c.hint != nil && *c.hint {
			claims = append(claims, c.yes)
		} else if c.hint != nil {
			claims = append(claims, c.no)
		}
	}
	return claims
}

// presets are the usual reasons of a no.
func presets() []string {
	return []string{"Nobody expects this call", "The target is wrong", "The arguments look wrong", "Not at this time", "Ask for less, then again"}
}

func (h *Handler) detailOf(q *question, v visitor) detailPage {
	bound := q.Bound()
	p := detailPage{
		question: q, Args: blockOf("Arguments", q.Arguments, bound.ArgumentsDigest), Presets: presets(),
		Fresh: v.fresh || !q.Rule.FreshLogin, Tokens: make(map[string]string),
	}
	if len(q.Asked) > 0 {
		p.Before = blockOf("Arguments that were asked for", q.Asked, q.Binding.ArgumentsDigest)
		p.EditLines = comparedJSON(q.Asked, q.Arguments)
	}
	if len(q.Definition) > 0 {
		p.Offer = blockOf("Whole definition", q.Definition, q.Binding.ToolDefinitionDigest)
		p.Offer.Open = false
		if json.Unmarshal(q.Definition, &p.Words) != nil {
			p.Words = toolWords{}
		}
	}
	for _, k := range q.Kinds {
		if k == ledger.Approve && !q.ApprovedAt.IsZero() {
			continue // it counts already
		}
		p.Tokens[string(k)] = h.formToken(v.cookie, "/a/"+q.ID+"/"+string(k))
	}
	if p.MayAllow() && q.ApprovedAt.IsZero() {
		p.Tokens[string(allowKind)] = h.formToken(v.cookie, "/a/"+q.ID+"/"+string(allowKind))
	}
	if p.Edit = Escaped(p.Args.Pretty); p.Edit == "" {
		p.Edit = Escaped(q.Arguments)
	}
	return p
}

// showDetail is one approval.
func (h *Handler) showDetail(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	q, err := h.read(r.Context(), r.PathValue("id"), v.who)
	if err != nil {
		return err
	}
	p := h.detailOf(q, v)
	p.Done = done(ledger.DecisionKind(r.URL.Query().Get("done")))
	return h.renderDetail(w, http.StatusOK, v, p)
}

func (h *Handler) renderDetail(w http.ResponseWriter, status int, v visitor, p detailPage) error {
	return h.render(w, status, "detail", v, view{Title: Escaped([]byte(p.Binding.Tool + " on " + p.Binding.Server)), Live: "page", Page: p})
}

func done(kind ledger.DecisionKind) string {
	switch kind {
	case ledger.Approve:
		return "Your approval is recorded."
	case allowKind:
		return "Your approval is recorded, and calls like this one run without a question now; the page of permissions lists that."
	case ledger.Deny:
		return "Your denial is recorded; the call does not run."
	case ledger.Edit:
		return "The edited arguments are recorded; they are what runs now."
	case ledger.Extend:
		return "There is more time now."
	case ledger.Revoke:
		return "It is taken back; the call does not run."
	}
	return ""
}

func (h *Handler) serveStatic(w http.ResponseWriter, r *http.Request) {
	content, err := static.ReadFile("static/" + r.PathValue("file"))
	if err != nil {
		problem.Write(w, schema.Errorf(schema.KindNotFound, "There is no such file."))
		return
	}
	media := "text/css; charset=utf-8"
	switch path.Ext(r.PathValue("file")) {
	case ".js":
		media = "text/javascript; charset=utf-8"
	case ".svg":
		media = "image/svg+xml"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(content) // the browser went away; nobody is left to be told
}

// stamp is a moment as an element: in UTC, which the script changes to the zone and the
// form of the reader.
func stamp(t time.Time, form string) template.HTML {
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(form) + `</time>`) //nolint:gosec // digits and the letters of the form
}

// wait is a time to wait in words, as the script counts it down.
func wait(until, now time.Time) string {
	left := until.Sub(now).Round(time.Second)
	switch {
	case left <= 0:
		return "time is over"
	case left < time.Minute:
		return fmt.Sprintf("%d s left", int(left.Seconds()))
	case left < time.Hour:
		return fmt.Sprintf("%d min %02d s left", int(left.Minutes()), int(left.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min left", int(left.Hours()), int(left.Minutes())%60)
}

// number writes a count with its thousands apart.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func levelName(level int) string {
	switch level {
	case 1:
		return "low"
	case 2:
		return "medium"
	}
	return "high"
}
