package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxBulk is the maximum number of calls in one bulk decision.
	maxBulk = console.MaxTogether
	// maxBulkBytes limits the bytes of arguments on one page. The first call is always shown in
	// full.
	maxBulkBytes = 4 << 20
	// readAtOnce is the number of calls that are read concurrently for a page.
	readAtOnce = 8
	// pickPrefix is the prefix of the fields that select a call. The value is the digest of the
	// displayed arguments.
	pickPrefix = "pick."
	reviewPath = "/review"
)

// bulkPages shows several calls for one review, and records one decision on them.
type bulkPages struct {
	site      *site
	approvals *approvals
}

func (g *bulkPages) register() {
	g.site.visited("GET "+reviewPath, g.show)
	g.site.visited("POST "+reviewPath, g.decide)
}

// bulkPage lists several calls with all data for a decision.
type bulkPage struct {
	Calls []detailPage
	// Left is the number of calls that did not fit on this page.
	Left    int
	Can     int // the number of calls that the viewer may decide
	Stale   bool
	Reasons bool // one of them requires a reason
	Token   string
	SignIn  string // the address that signs in again and leads back to this page
	Presets []string
}

// chosen returns the approvals selected by the address of the page: those with the IDs, in the order
// of the list, or all of a requester that the person can decide, oldest first.
func (g *bulkPages) chosen(q url.Values, who schema.Principal) ([]schema.ApprovalID, error) {
	var ids []schema.ApprovalID
	seen := make(map[schema.ApprovalID]bool)
	add := func(id schema.ApprovalID) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for name, given := range q {
		switch name {
		case "id":
			for _, id := range given {
				add(schema.ApprovalID(id))
			}
		case "requester":
			g.site.o.Ledger.EachPending(schema.OnlyTenant(who.Tenant), func(a *ledger.Approval) {
				if a.Binding.Requester.Name != given[0] {
					return
				}
				if one, ok := g.approvals.see(a, who); ok && one.MayApprove() {
					add(a.ID)
				}
			})
		case "arrived":
		default:
			return nil, schema.Errorf(schema.KindInvalidRequest, "This page accepts the parameters id and requester.")
		}
	}
	if len(ids) == 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "No call was selected. Go back to the list and select at least one.")
	}
	return ids, nil
}

// show shows several calls on one page.
func (g *bulkPages) show(w http.ResponseWriter, r *http.Request, v visitor) error {
	ids, err := g.chosen(r.URL.Query(), v.who)
	if err != nil {
		return err
	}
	p := bulkPage{Token: g.site.access.formToken(v.cookie, reviewPath), SignIn: "/sign-in?next=" + url.QueryEscape(r.URL.RequestURI()), Presets: presets()}
	shown, err := g.read(r.Context(), ids, v.who)
	if err != nil {
		return err
	}
	p.Left = len(ids) - len(shown)
	for i, q := range shown {
		d := newDetail(g.site.access, q, v)
		d.Args.Label = fmt.Sprintf("Arguments of call %d", i+1)
		d.Before.Label = fmt.Sprintf("Requested arguments of call %d", i+1)
		p.Calls = append(p.Calls, d)
		if d.Choosable() {
			p.Can++
			p.Stale = p.Stale || !d.Fresh
			p.Reasons = p.Reasons || q.Rule.Reasons
		}
	}
	title := fmt.Sprintf("Review %d calls", len(p.Calls))
	return g.site.render(w, http.StatusOK, "bulk", v, view{Title: title, Live: "page", Page: p})
}

// read reads as many of the first approvals as fit on a page, some of them concurrently. The
// records are from this process's local copy. A decision on an outdated record is refused.
func (g *bulkPages) read(ctx context.Context, ids []schema.ApprovalID, who schema.Principal) (shown []*approvalView, err error) {
	all := make([]*approvalView, min(len(ids), maxBulk))
	for i, id := range ids[:len(all)] {
		if all[i], err = g.approvals.known(ctx, id, who); err != nil {
			return nil, err
		}
	}
	last, left := g.approvals.lastAllowed(who.Tenant, all...), maxBulkBytes
	for some := range slices.Chunk(all, readAtOnce) {
		reads, ctx := errgroup.WithContext(ctx)
		for _, q := range some {
			reads.Go(func() error { return g.approvals.addBytes(ctx, q, last) })
		}
		if err := reads.Wait(); err != nil {
			return nil, err
		}
		for _, q := range some {
			if left -= len(q.Arguments) + len(q.Asked); left < 0 && len(shown) > 0 {
				return shown, nil
			}
			shown = append(shown, q)
		}
	}
	return shown, nil
}

// Choosable reports whether the viewer may decide the call.
func (p detailPage) Choosable() bool { return p.MayApprove() && p.State == ledger.Pending }

// decide records a decision on several calls. Each is decided independently, and the response
// lists the outcome of each.
func (g *bulkPages) decide(w http.ResponseWriter, r *http.Request, v visitor) error {
	f := r.PostForm
	answer := approval.Answer{Kind: ledger.DecisionKind(f.Get("kind")), Reason: strings.TrimSpace(f.Get("reason")), Fresh: v.fresh}
	if answer.Kind != ledger.Approve && answer.Kind != ledger.Deny {
		return schema.Errorf(schema.KindInvalidRequest, "Neither approve nor deny was selected; no decision was recorded. Go back and select one.")
	}
	if answer.Reason == "" && answer.Kind == ledger.Deny {
		answer.Reason = f.Get("preset")
	}
	var ids []schema.ApprovalID
	for name := range f {
		if id, ok := strings.CutPrefix(name, pickPrefix); ok {
			ids = append(ids, schema.ApprovalID(id))
		}
	}
	slices.Sort(ids)
	switch {
	case len(ids) == 0:
		return schema.Errorf(schema.KindInvalidRequest, "No call was selected; no decision was recorded. Go back and select at least one.")
	case len(ids) > maxBulk:
		return schema.Errorf(schema.KindInvalidRequest, "More than %d calls were selected; no decision was recorded. Select fewer.", maxBulk)
	}
	var outcomes []outcome
	for _, id := range ids {
		answer.Digest = f.Get(pickPrefix + string(id))
		one := g.approvals.decideOne(r.Context(), id, answer, v.who, "web")
		if one.Err != nil {
			if q, ok := g.approvals.repeats(r.Context(), id, answer, v.who); ok {
				one.After, one.Err = q, nil
			}
		}
		outcomes = append(outcomes, one)
	}
	return g.site.render(w, http.StatusOK, "outcomes", v, view{Title: "Result of the review", Page: outcomesPage{Kind: answer.Kind, All: outcomes}})
}

type outcomesPage struct {
	Kind ledger.DecisionKind
	All  []outcome
}

// Done returns the number of recorded decisions.
func (p outcomesPage) Done() (n int) {
	for _, o := range p.All {
		if o.Err == nil {
			n++
		}
	}
	return n
}
