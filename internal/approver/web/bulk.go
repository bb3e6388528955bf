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
	// maxBulk is how many calls are decided with one request.
	maxBulk = console.MaxTogether
	// maxBulkBytes is how many bytes of arguments one page shows; the first
	// call is always on it, whole.
	maxBulkBytes = 4 << 20
	// readAtOnce is how many calls are read side by side for a page.
	readAtOnce = 8
	// pickPrefix begins the name of a field that chooses a call; its value is the
	// digest of the arguments that were shown.
	pickPrefix = "pick."
)

// bulkPages show several calls for one review, and take one decision on them.
type bulkPages struct {
	site      *site
	approvals *approvals
}

func (g *bulkPages) register() {
	g.site.visited("GET /review", g.show)
	g.site.visited("POST /review", g.decide)
}

// bulkPage lists several calls with everything that a decision needs.
type bulkPage struct {
	Calls []detailPage
	// Left is how many more there are that this page has no room for.
	Left    int
	Can     int // the number of them that the viewer may decide
	Stale   bool
	Reasons bool // one of them wants a reason
	Token   string
	Presets []string
}

// chosen are the approvals that the address of the page names: those with the ids,
// or all that wait of a requester.
func (g *bulkPages) chosen(q url.Values, who schema.Principal) ([]schema.ApprovalID, error) {
	var ids []schema.ApprovalID
	for name, given := range q {
		switch name {
		case "id":
			for _, id := range given {
				ids = append(ids, schema.ApprovalID(id))
			}
		case "requester":
			g.site.o.Ledger.EachPending(schema.OnlyTenant(who.Tenant), func(a *ledger.Approval) {
				if a.Binding.Requester.Name != given[0] {
					return
				}
				if one, ok := g.approvals.see(a, who); ok && one.Blocked == "" {
					ids = append(ids, a.ID)
				}
			})
		case "arrived":
		default:
			return nil, schema.Errorf(schema.KindInvalidRequest, "This page accepts the parameters id and requester.")
		}
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
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
	p := bulkPage{Token: g.site.access.formToken(v.cookie, "/review"), Presets: presets()}
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

// read reads the first of the approvals, as many as a page has room for, some of them at once. A
// record is that of this process's view: the decision says whether it is out of date.
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

// Choosable says that the one who looks may decide the call at all.
func (p detailPage) Choosable() bool { return p.MayApprove() && p.State == ledger.Pending }

// decide takes a decision on several calls. Each is decided by itself, as if
// it were the only one; the answer says what came of each.
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
		outcomes = append(outcomes, g.approvals.decideOne(r.Context(), id, answer, v.who, "web"))
	}
	return g.site.render(w, http.StatusOK, "outcomes", v, view{Title: "Result of the review", Page: outcomesPage{Kind: answer.Kind, All: outcomes}})
}

type outcomesPage struct {
	Kind ledger.DecisionKind
	All  []outcome
}

// Done counts the decisions that are recorded.
func (p outcomesPage) Done() (n int) {
	for _, o := range p.All {
		if o.Err == nil {
			n++
		}
	}
	return n
}
