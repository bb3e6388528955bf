package web

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/textdiff"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	pageLimit    = 100
	maxPageLimit = 1000
)

// stateNames returns the states of approvals, for an error.
func stateNames() string {
	var all []string
	for _, state := range ledger.States() {
		all = append(all, string(state))
	}
	return strings.Join(all, ", ")
}

func filterOf(values url.Values) (f ledger.Filter, cursor ledger.Cursor, err error) {
	f.Limit = pageLimit
	for name, given := range values {
		none, bad := ledger.Cursor{}, func(format string, args ...any) error {
			return schema.Errorf(schema.KindInvalidRequest, "The parameter "+format, args...)
		}
		if len(given) > 1 && name != "state" {
			return f, none, bad("%q is given twice.", name)
		}
		switch name {
		case "state":
			for _, text := range given {
				for one := range strings.SplitSeq(text, ",") {
					if !slices.Contains(ledger.States(), ledger.State(one)) {
						return f, none, bad("state is not a state of an approval; use one of %s.", stateNames())
					}
					f.States = append(f.States, ledger.State(one))
				}
			}
		case "server":
			f.Server = schema.ServerID(given[0])
		case "tool":
			f.Tool = given[0]
		case "requester":
			f.Requester = given[0]
		case "cursor":
			var ok bool
			if cursor, ok = ledger.ParseCursor(given[0]); !ok && given[0] != "" {
				return f, none, bad("cursor must be the next_cursor of a page.")
			}
		case "limit":
			if f.Limit, err = strconv.Atoi(given[0]); err != nil || f.Limit < 1 || f.Limit > maxPageLimit {
				return f, none, bad("limit must be a number from 1 to %d.", maxPageLimit)
			}
		default:
			return f, none, errNoParameter(name)
		}
	}
	return f, cursor, nil
}

// list returns a page of the approvals that concern the person, and the cursor of the next page.
func (v *approvals) list(f ledger.Filter, cursor ledger.Cursor, who schema.Principal) (found []*approvalView, next string) {
	f.Fits = func(a *ledger.Approval) bool {
		_, ok := v.visible(a, who)
		return ok
	}
	page, more := v.o.Ledger.List(schema.OnlyTenant(who.Tenant), f, cursor)
	for _, a := range page {
		if q, ok := v.see(a, who); ok {
			found = append(found, q)
		}
	}
	if !more.IsZero() {
		next = more.String()
	}
	return found, next
}

// pendingRows is the number of pending calls per page, oldest first.
const pendingRows = 100

type pendingPage struct {
	Waiting []*approvalView
	Unready string // the reason why decisions cannot be recorded now, or ""
	Total   int    // of all pages
	Next    string // the address of the next page; empty on the last one
	First   bool   // it is the first page
	// Bulk lists the requesters with several calls that can be decided in one bulk review.
	Bulk []bulk
	// Some reports whether the viewer may decide anything on the page.
	Some bool
}

// bulk is a bulk review that the viewer can begin: calls of one requester.
type bulk struct {
	By string
	N  int
	To string
}

// pending returns a page of pending calls, starting after the cursor. The work per pending call is
// small: arguments and earlier approvals are read only for the calls on the page.
func (v *approvals) pending(ctx context.Context, after ledger.Cursor, who schema.Principal) (p pendingPage) {
	p.First = after.IsZero()
	counts, more := make(map[string]int), false
	v.o.Ledger.EachPending(schema.OnlyTenant(who.Tenant), func(a *ledger.Approval) {
		q, ok := v.see(a, who)
		if !ok {
			return
		}
		p.Total++
		may := q.MayApprove()
		if may {
			counts[a.Binding.Requester.Name]++
		}
		if ledger.CursorOf(a).Compare(after) <= 0 {
			return
		}
		if more = len(p.Waiting) == pendingRows; !more {
			q.Approval = a.Clone()
			p.Waiting, p.Some = append(p.Waiting, q), p.Some || may
		}
	})
	if more {
		p.Next = "/?" + url.Values{"after": {ledger.CursorOf(p.Waiting[len(p.Waiting)-1].Approval).String()}}.Encode()
	}
	last := v.lastAllowed(who.Tenant, p.Waiting...)
	for _, q := range p.Waiting {
		q.Peek = v.peek(ctx, q.Approval)
		allowed := last.of(q.Approval)
		q.ToolChanged = allowed != nil && allowed.Binding.ToolDefinitionDigest != q.Binding.ToolDefinitionDigest
	}
	for _, by := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[by]; n > 1 {
			p.Bulk = append(p.Bulk, bulk{By: by, N: min(n, maxBulk), To: "/review?" + url.Values{"requester": {by}}.Encode()})
		}
	}
	return p
}

// historyRow is a row of the history.
type historyRow struct {
	*approvalView
	// Lines is the diff of an edit of the arguments, if it is short.
	Lines []textdiff.Line
}

// maxPastDiff limits the size of arguments that are compared in a list, in bytes.
const maxPastDiff = 64 << 10

// past adds the diff of an edit. If it cannot be read or is long, only the page of the approval
// shows it.
func (v *approvals) past(ctx context.Context, q *approvalView) historyRow {
	p := historyRow{approvalView: q}
	if q.Edited == nil {
		return p
	}
	asked, err := v.o.Ledger.Asked(ctx, q.Binding.Tenant, q.ID)
	if err != nil || len(asked) > maxPastDiff {
		return p
	}
	if edited, err := v.o.Ledger.Arguments(ctx, q.Binding.Tenant, q.ID); err == nil && len(edited) <= maxPastDiff {
		p.Lines = textdiff.JSON(asked, edited)
	}
	return p
}
