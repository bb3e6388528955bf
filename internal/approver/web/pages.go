package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// approvalPages serves the lists and the page of one approval, with its forms.
type approvalPages struct {
	site      *site
	approvals *approvals
}

func (g *approvalPages) register() {
	g.site.visited("GET /{$}", g.pending)
	g.site.visited("GET /history", g.history)
	g.site.visited("GET /a/{id}", g.detail)
	g.site.visited("GET /a/{id}/{kind}", g.detailOfForm)
	g.site.restored("POST /a/{id}/{kind}", g.decide, g.decideAgain)
}

// pending serves the list of pending calls. Only its first page has live updates.
func (g *approvalPages) pending(w http.ResponseWriter, r *http.Request, v visitor) error {
	given := r.URL.Query().Get("after")
	after, ok := ledger.ParseCursor(given)
	if given != "" && !ok {
		return schema.Errorf(schema.KindInvalidRequest, "The parameter after must be that of a link on the page.")
	}
	list := g.approvals.pending(r.Context(), after, v.who)
	list.Unready = g.unready()
	page := view{Title: "Pending approvals", Here: "/", Page: list}
	if list.First {
		page.Live = "list"
	}
	return g.site.render(w, http.StatusOK, "pending", v, page)
}

// unready returns the reason why decisions cannot be recorded now, or "". The lists are then of the
// time before.
func (g *approvalPages) unready() string {
	if err := g.site.o.Ready(); err != nil {
		return err.Error()
	}
	return ""
}

type historyPage struct {
	Found   []historyRow
	Next    string // the address of the next page
	Unready string
	State   string
	Server  schema.ServerID
	Tool    string
	By      string
	States  []ledger.State
}

// history serves the list of all approvals, with filters.
func (g *approvalPages) history(w http.ResponseWriter, r *http.Request, v visitor) error {
	values := r.URL.Query()
	values.Del("arrived")
	for name, given := range values {
		if len(given) == 1 && given[0] == "" {
			values.Del(name) // forms also submit empty fields
		}
	}
	f, cursor, err := filterOf(values)
	if err != nil {
		return err
	}
	page := historyPage{Unready: g.unready(), Server: f.Server, Tool: f.Tool, By: f.Requester, States: ledger.States()}
	if len(f.States) > 0 {
		page.State = string(f.States[0])
	}
	f.Limit = min(f.Limit, pageLimit)
	found, next := g.approvals.list(f, cursor, v.who)
	for _, q := range found {
		page.Found = append(page.Found, g.approvals.past(r.Context(), q))
	}
	if next != "" {
		values.Set("cursor", next)
		page.Next = "/history?" + values.Encode()
	}
	return g.site.render(w, http.StatusOK, "history", v, view{Title: "History", Here: "/history", Page: page})
}

// detail serves the page of one approval.
func (g *approvalPages) detail(w http.ResponseWriter, r *http.Request, v visitor) error {
	id, done := schema.ApprovalID(r.PathValue("id")), ledger.DecisionKind(r.URL.Query().Get("done"))
	find := g.approvals.find
	if done != "" {
		find = g.approvals.current
	}
	q, err := g.approvals.readWith(r.Context(), id, v.who, find)
	if err != nil {
		return err
	}
	p := newDetail(g.site.access, q, v)
	p.Done = q.done(done, v.who)
	return g.renderDetail(w, http.StatusOK, v, p)
}

// detailOfForm redirects from the target of a form to the page of its approval. A refused form has the
// address of its target, which people reload and send to others.
func (g *approvalPages) detailOfForm(w http.ResponseWriter, r *http.Request, _ visitor) error {
	http.Redirect(w, r, next(r.URL.EscapedPath()), http.StatusSeeOther) //nolint:gosec // next lets pages of ours through only
	return nil
}

func (g *approvalPages) renderDetail(w http.ResponseWriter, status int, v visitor, p detailPage) error {
	page := view{Title: visible.Escaped([]byte(p.Binding.Tool + " on " + string(p.Binding.Server))), Live: "page", Page: p}
	if status != http.StatusOK {
		page.Self = "/a/" + string(p.ID)
	}
	return g.site.render(w, status, "detail", v, page)
}

// done describes the decision that a form has recorded, or returns "" if the record has no such
// decision of the person: people open the address again, and send it to others.
func (q *approvalView) done(kind ledger.DecisionKind, who schema.Principal) string {
	last, allows := approval.LastDecision(q.Approval, who), kind == allowKind
	if allows {
		kind = ledger.Approve
	}
	if last == nil || last.Kind != kind || (last.Allow != nil) != allows {
		return ""
	}
	switch kind {
	case ledger.Approve:
		if allows {
			return "Your approval is recorded. Matching calls now run without approval; see Permissions."
		}
		return "Your approval is recorded."
	case ledger.Deny:
		return "Your denial is recorded. The call does not run."
	case ledger.Edit:
		if q.State == ledger.Pending {
			return "Your edit is recorded. If the call is approved, it runs with the edited arguments."
		}
		return "Your edit is recorded. The call runs with the edited arguments."
	case ledger.Extend:
		return "The deadline is extended."
	case ledger.Revoke:
		return "The request is withdrawn. The call does not run."
	}
	return ""
}

// answerOf parses a form of the detail page.
func (g *approvalPages) answerOf(r *http.Request, v visitor) (schema.ApprovalID, ledger.DecisionKind, approval.Answer) {
	id, kind := schema.ApprovalID(r.PathValue("id")), ledger.DecisionKind(r.PathValue("kind"))
	f := r.PostForm
	answer := approval.Answer{Kind: kind, Reason: strings.TrimSpace(f.Get("reason")), Digest: f.Get("digest"), Fresh: v.fresh}
	if answer.Reason == "" && kind == ledger.Deny {
		answer.Reason = f.Get("preset") // the form has buttons for approval and denial; this field is for the denial
	}
	if kind == ledger.Edit {
		// Forms end their lines with CR LF. No JSON string contains either raw.
		answer.Arguments = []byte(strings.ReplaceAll(f.Get("arguments"), "\r\n", "\n"))
		if limit := g.site.o.ArgumentBytes; len(answer.Arguments) > limit {
			answer.Arguments = compactWithin(answer.Arguments, limit)
		}
	}
	return id, kind, answer
}

// compactWithin returns JSON without white space if it is then within the limit. The form has the
// arguments indented, so that those that are close to the limit exceed it there.
func compactWithin(text []byte, limit int) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil || b.Len() > limit {
		return text
	}
	return b.Bytes()
}

// decideAgain shows the form again to a person who has signed in since they opened it.
func (g *approvalPages) decideAgain(w http.ResponseWriter, r *http.Request, v visitor) error {
	id, kind, answer := g.answerOf(r, v)
	return g.refuse(w, r, v, id, kind, answer, errExpired())
}

// decide handles a form of the detail page.
func (g *approvalPages) decide(w http.ResponseWriter, r *http.Request, v visitor) error {
	id, kind, answer := g.answerOf(r, v)
	if kind == allowKind {
		answer.Kind = ledger.Approve
		var err error
		if answer.Allow, err = parsePermission(r.PostForm, g.site.o.Now()); err != nil {
			return g.refuse(w, r, v, id, kind, answer, err)
		}
	}
	if _, err := g.approvals.decide(r.Context(), id, answer, v.who, "web"); err != nil {
		if _, ok := g.approvals.repeats(r.Context(), id, answer, v.who); !ok {
			return g.refuse(w, r, v, id, kind, answer, err)
		}
	}
	http.Redirect(w, r, "/a/"+url.PathEscape(string(id))+"?done="+url.QueryEscape(string(kind)), http.StatusSeeOther)
	return nil
}

// refuse shows the current page with the submitted values and the reason of the refusal.
func (g *approvalPages) refuse(w http.ResponseWriter, r *http.Request, v visitor, id schema.ApprovalID, kind ledger.DecisionKind, answer approval.Answer, err error) error {
	q, readErr := g.approvals.read(r.Context(), id, v.who)
	if readErr != nil {
		return err
	}
	g.site.o.fault(r.Context(), r.Pattern, err)
	d := problem.Of(err)
	p := newDetail(g.site.access, q, v)
	p.Refusal, p.Faults, p.Reason = d.Detail, schema.AsError(err).Faults, answer.Reason
	if p.Blocked != "" || p.Tokens[string(kind)] == "" { // the page does not have the form any more
		p.Entered = entered(r)
	}
	switch kind {
	case ledger.Edit:
		p.Edit, p.EditOpen = string(answer.Arguments), true
	case allowKind:
		p.AllowOpen = true
	}
	return g.renderDetail(w, d.Status, v, p)
}

// parsePermission parses the form of a permission.
func parsePermission(f url.Values, now time.Time) (*ledger.Allow, error) {
	allow := &ledger.Allow{Pattern: ledger.Pattern{Kind: ledger.PatternKind(f.Get("pattern"))}}
	i := slices.IndexFunc(spans(), func(s span) bool { return s.For.String() == f.Get("for") })
	if i < 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "Select how long the permission is valid.")
	}
	allow.Until = now.Add(spans()[i].For)
	if text := strings.TrimSpace(f.Get("uses")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1_000_000 {
			return nil, schema.Errorf(schema.KindInvalidRequest, "The maximum number of calls must be between 1 and 1,000,000; leave it empty for no limit.")
		}
		allow.MaxUses = n
	}
	if allow.Pattern.Kind == ledger.SameValues {
		for name := range f {
			if pointer, ok := strings.CutPrefix(name, samePlace); ok {
				allow.Pattern.Values = append(allow.Pattern.Values, ledger.Value{Pointer: pointer})
			}
		}
		slices.SortFunc(allow.Pattern.Values, func(a, b ledger.Value) int { return strings.Compare(a.Pointer, b.Pointer) })
	}
	return allow, nil
}
