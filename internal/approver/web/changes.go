package web

import (
	"context"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/textdiff"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// ToolChange compares the tool's definition with the one that was last approved. Approvals are
// removed from the ledger after some time, so "first" means that no earlier one is stored.
type ToolChange struct {
	// Is is "first", "unchanged" or "changed".
	Is string `json:"is" enum:"first,unchanged,changed" doc:"first: no earlier call of the tool that a person approved is on record. unchanged: the definition is that of the last approved call. changed: it differs."`
	// At is the time at which the last approved call was requested.
	At *time.Time `json:"last_asked_at,omitempty" doc:"When the last approved call was requested; absent with first."`
	// Digest is the digest of the earlier definition. Before is the definition itself, if it
	// changed and is stored.
	Digest string `json:"last_tool_definition_digest,omitempty" doc:"The digest of the definition of the last approved call; absent with first."`
	Before *Bytes `json:"last_tool_definition,omitempty" doc:"The earlier definition, if it has changed and is stored."`

	// Lines is the diff, for pages.
	Lines []textdiff.Line `json:"-"`
}

// wasAllowed lists the states of an approved call.
var wasAllowed = []ledger.State{ledger.Approved, ledger.Running, ledger.Succeeded, ledger.Failed, ledger.Unknown}

// seenByPerson reports whether a person approved the call. The caller and standing permissions do
// not count, because they do not look at the tool.
func seenByPerson(a *ledger.Approval) bool {
	return slices.ContainsFunc(a.Decisions, func(d ledger.Decision) bool {
		return (d.Kind == ledger.Approve || d.Kind == ledger.Edit) && d.Channel != ledger.ChannelToken && d.Channel != ledger.ChannelCaller && d.Channel != ledger.ChannelStanding
	})
}

// tool identifies a tool of a server.
type tool struct {
	server schema.ServerID
	name   string
}

func toolOf(a *ledger.Approval) tool { return tool{a.Binding.Server, a.Binding.Tool} }

// lastAllowed maps a tool and a time to the last call before that time that a person approved.
// The zero time means now.
type lastAllowed map[tool]map[time.Time]*ledger.Approval

// evaluationTime returns the time to use for an approval: now if it is pending, else its creation.
func evaluationTime(a *ledger.Approval) time.Time {
	if a.State == ledger.Pending {
		return time.Time{}
	}
	return a.Created
}

// of returns the last approved call of an approval's tool, or nil.
func (l lastAllowed) of(a *ledger.Approval) *ledger.Approval { return l[toolOf(a)][evaluationTime(a)] }

// lastAllowed returns the last approved calls for these approvals of a tenant. It may include calls
// that the person cannot see, because only the tool's definition is shown. It scans all approvals
// once.
func (v *approvals) lastAllowed(tenant schema.TenantID, all ...*approvalView) lastAllowed {
	found := make(lastAllowed)
	for _, q := range all {
		if found[toolOf(q.Approval)] == nil {
			found[toolOf(q.Approval)] = make(map[time.Time]*ledger.Approval)
		}
		found[toolOf(q.Approval)][evaluationTime(q.Approval)] = nil
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

// change compares the tool's definition with that of the last approved call, which may be nil.
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
		return c, nil // one of them is not stored; the digests suffice
	}
	c.Before, c.Lines = bytesOf(raw), textdiff.JSON(raw, q.Definition)
	return c, nil
}
