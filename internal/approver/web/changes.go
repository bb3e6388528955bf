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

	raw []byte
	// Lines show what changed, for pages.
	Lines []textdiff.Line `json:"-"`
}

// wasAllowed are the states of a call that somebody approved.
func wasAllowed() []ledger.State {
	return []ledger.State{ledger.Approved, ledger.Running, ledger.Succeeded, ledger.Failed, ledger.Unknown}
}

// seenByPerson says that a person approved, and not the caller itself, nor a
// standing permission: of those nobody looked at the tool.
func seenByPerson(a *ledger.Approval) bool {
	return slices.ContainsFunc(a.Decisions, func(d ledger.Decision) bool {
		return (d.Kind == ledger.Approve || d.Kind == ledger.Edit) && d.Channel != ledger.ChannelToken && d.Channel != ledger.ChannelCaller && d.Channel != ledger.ChannelStanding
	})
}

// lastAllowed finds the call of the same tool that a person allowed last, among
// those asked for before this one where this one is decided already. It may be one
// that this person cannot see: only the tool's own words are shown of it.
func (v *approvals) lastAllowed(a *ledger.Approval) *ledger.Approval {
	f := ledger.Filter{States: wasAllowed(), Server: a.Binding.Server, Tool: a.Binding.Tool, Limit: pageLimit}
	var found *ledger.Approval
	for cursor := schema.ApprovalID(""); ; {
		page, next := v.o.Ledger.List(schema.OnlyTenant(a.Binding.Tenant), f, string(cursor))
		for _, other := range page {
			if other.ID == a.ID || !seenByPerson(other) || a.State != ledger.Pending && !other.Created.Before(a.Created) {
				continue
			}
			if found == nil || other.Created.After(found.Created) {
				found = other
			}
		}
		// The newest come first, by the time in their ids.
		if cursor = next; found != nil || cursor == "" {
			return found
		}
	}
}

// change compares the tool's definition with that of the last time.
func (v *approvals) change(ctx context.Context, q *approvalView) (*ToolChange, error) {
	last := v.lastAllowed(q.Approval)
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
	c.raw, c.Before, c.Lines = raw, bytesOf(raw), textdiff.JSON(raw, q.Definition)
	return c, nil
}
