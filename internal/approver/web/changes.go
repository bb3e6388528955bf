package web

import (
	"context"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/textdiff"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// ToolChange says how the tool's definition stands to the one with which it was
// approved last. Approvals age out of the ledger, so "first" is as far as it
// remembers.
type ToolChange struct {
	// Is is "first", "unchanged" or "changed".
	Is string `json:"is" enum:"first,unchanged,changed" doc:"first: no earlier call is on record."`
	// At is when the call was asked for that was approved last.
	At *time.Time `json:"last_asked_at,omitempty"`
	// Digest is that of the definition then; Before the definition itself, where it
	// changed and is kept.
	Digest string `json:"last_tool_definition_digest,omitempty"`
	Before *Bytes `json:"last_tool_definition,omitempty" doc:"The earlier definition, if it has changed and is stored."`

	// Lines show what changed, for pages.
	Lines []textdiff.Line `json:"-"`
}

// wasAllowed are the states of a call that somebody approved.
var wasAllowed = []ledger.State{ledger.Approved, ledger.Running, ledger.Succeeded, ledger.Failed, ledger.Unknown}

// seenByPerson says that a person approved, and not the caller itself, nor a
// standing permission: of those nobody looked at the tool.
func seenByPerson(a *ledger.Approval) bool {
	return slices.ContainsFunc(a.Decisions, func(d ledger.Decision) bool {
		return (d.Kind == ledger.Approve || d.Kind == ledger.Edit) && d.Channel != ledger.ChannelToken && d.Channel != ledger.ChannelCaller && d.Channel != ledger.ChannelStanding
	})
}

// tool is a tool of a server.
type tool struct {
	server schema.ServerID
	name   string
}

func toolOf(a *ledger.Approval) tool { return tool{a.Binding.Server, a.Binding.Tool} }

// lastAllowed has, of tools, the call that a person allowed last, among those asked for before a
// time; the zero time stands for now.
type lastAllowed map[tool]map[time.Time]*ledger.Approval

// before is the time that counts for an approval: while it waits, what was allowed until now.
func before(a *ledger.Approval) time.Time {
	if a.State == ledger.Pending {
		return time.Time{}
	}
	return a.Created
}

// of is the last one of an approval's tool; nil where there is none.
func (l lastAllowed) of(a *ledger.Approval) *ledger.Approval { return l[toolOf(a)][before(a)] }

// lastAllowed looks for the last ones of these approvals of a tenant. They may be some that this
// person cannot see: only the tool's own words are shown of them. It looks at all approvals once.
func (v *approvals) lastAllowed(tenant schema.TenantID, all ...*approvalView) lastAllowed {
	found := make(lastAllowed)
	for _, q := range all {
		if found[toolOf(q.Approval)] == nil {
			found[toolOf(q.Approval)] = make(map[time.Time]*ledger.Approval)
		}
		found[toolOf(q.Approval)][before(q.Approval)] = nil
	}
	v.o.Ledger.Each(schema.OnlyTenant(tenant), func(a *ledger.Approval) {
		for until, newest := range found[toolOf(a)] {
			if (until.IsZero() || a.Created.Before(until)) && (newest == nil || a.Created.After(newest.Created)) && slices.Contains(wasAllowed, a.State) && seenByPerson(a) {
				found[toolOf(a)][until] = a.Clone()
			}
		}
	})
	return found
}

// change compares the tool's definition with that of the last time; last is nil where there is
// none.
func (v *approvals) change(ctx context.Context, q *approvalView, last *ledger.Approval) (*ToolChange, error) {
	if last == nil {
		return &ToolChange{Is: "first"}, nil
	}
	c := &ToolChange{Is: "unchanged", At: &last.Created, Digest: last.Binding.ToolDefinitionDigest}
	if c.Digest == q.Binding.ToolDefinitionDigest {
		return c, nil
	}
	c.Is = "changed"
	raw, err := v.o.Ledger.Definition(ctx, last.Binding.Tenant, last.ID)
	if kind := schema.KindOf(err); err != nil && kind != schema.KindNotFound {
		return nil, err
	}
	if len(raw) == 0 || len(q.Definition) == 0 {
		return c, nil // one of them is not kept; the digests say enough
	}
	c.Before, c.Lines = bytesOf(raw), textdiff.JSON(raw, q.Definition)
	return c, nil
}
