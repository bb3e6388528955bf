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

func filterOf(values url.Values) (f ledger.Filter, cursor string, err error) {
	f.Limit = pageLimit
	for name, given := range values {
		bad := func(format string, args ...any) error {
			return schema.Errorf(schema.KindInvalidRequest, "The parameter "+format, args...)
		}
		if len(given) > 1 && name != "state" {
			return f, "", bad("%q is given twice.", name)
		}
		switch name {
		case "state":
			for _, text := range given {
				for one := range strings.SplitSeq(text, ",") {
					if !slices.Contains(ledger.States(), ledger.State(one)) {
						return f, "", bad("state is not a state of an approval; use one of %v.", ledger.States())
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
			if cursor = given[0]; cursor != "" && !plainID(schema.ApprovalID(cursor)) {
				return f, "", bad("cursor must be the next_cursor of a page.")
			}
		case "limit":
			if f.Limit, err = strconv.Atoi(given[0]); err != nil || f.Limit < 1 || f.Limit > maxPageLimit {
				return f, "", bad("limit must be a number from 1 to %d.", maxPageLimit)
			}
		default:
			return f, "", errNoParameter(name)
		}
	}
	return f, cursor, nil
}

// list returns a page of what concerns the person, and the cursor of the next.
func (v *approvals) list(f ledger.Filter, cursor string, who schema.Principal) (found []*approvalView, next string) {
	limit := f.Limit
	f.Limit = maxPageLimit
	for {
		page, more := v.o.Ledger.List(schema.OnlyTenant(who.Tenant), f, cursor)
		for _, a := range page {
			q, ok := v.see(a, who)
			if !ok {
				continue
			}
			if len(found) == limit {
				return found, string(found[limit-1].ID)
			}
			found = append(found, q)
		}
		if cursor = string(more); cursor == "" {
			return found, ""
		}
	}
}

type pendingPage struct {
	Waiting []*approvalView
	// Bulk are the requesters of whom several calls can be decided in one review.
	Bulk []bulk
	// Some says that anything can be decided at all.
	Some bool
}

// bulk is a bulk review that the one who looks can begin: calls of one requester.
type bulk struct {
	By string
	N  int
	To string
}

func (v *approvals) pending(ctx context.Context, who schema.Principal) (p pendingPage) {
	last := make(map[[2]string]*ledger.Approval)
	counts := make(map[string]int)
	for _, a := range v.o.Ledger.Pending() {
		q, ok := v.see(a, who)
		if !ok {
			continue
		}
		if len(p.Waiting) < maxPeeks {
			q.Peek = v.peek(ctx, a)
		}
		tool := [2]string{string(a.Binding.Server), a.Binding.Tool}
		if _, ok := last[tool]; !ok {
			last[tool] = v.lastAllowed(a)
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
			p.Bulk = append(p.Bulk, bulk{By: by, N: min(n, maxBulk), To: "/review?" + url.Values{"requester": {by}}.Encode()})
		}
	}
	return p
}

// past is a row of the history.
type past struct {
	*approvalView
	// Lines are what an edit made of the arguments, where that is short.
	Lines []textdiff.Line
}

// maxPastDiff is how many bytes of arguments are compared in a list.
const maxPastDiff = 64 << 10

// pastOf adds what an edit changed. What cannot be read, or is long, is on the
// page of the approval.
func (v *approvals) past(ctx context.Context, q *approvalView) past {
	p := past{approvalView: q}
	if q.Edited == nil {
		return p
	}
	asked, err := v.o.Ledger.Asked(ctx, q.ID)
	if err != nil || len(asked) > maxPastDiff {
		return p
	}
	if edited, err := v.o.Ledger.Arguments(ctx, q.ID); err == nil && len(edited) <= maxPastDiff {
		p.Lines = textdiff.JSON(asked, edited)
	}
	return p
}
