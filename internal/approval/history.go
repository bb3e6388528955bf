package approval

import (
	"context"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// appendWait is the maximum time that a caller waits while the audit record accepts no more
// entries. [Desk.Repair] writes the entries that are dropped then.
const appendWait = 100 * time.Millisecond

// history returns the audit entries of an approval in chronological order. It depends on the
// record alone, so that another process can write the entries of a killed one verbatim.
func history(a *ledger.Approval) []audit.Entry {
	b, bound := &a.Binding, a.Bound()
	entry := func(kind audit.Kind, at time.Time) audit.Entry {
		return audit.Entry{
			Kind: kind, At: at.UTC().Round(0), CallID: a.CallID, ApprovalID: a.ID, Tenant: b.Tenant, Server: b.Server, Tool: b.Tool, Level: b.Level,
			PolicyVersion: b.PolicyVersion, ArgumentsDigest: b.ArgumentsDigest, BindingDigest: a.BindingDigest, PermissionID: a.Permission,
		}
	}
	all := make([]audit.Entry, 0, len(a.Decisions)+4)
	held := entry(audit.Held, a.Created)
	if a.Permission != "" {
		held.Kind = audit.PermissionUsed
	}
	held.By, held.Owner, held.DefinitionDigest, held.Reason = b.Requester.Name, b.Requester.Owner, b.ToolDefinitionDigest, risk.JoinReasons(a.FirstReasons())
	all = append(all, held)
	for i := range a.Decisions {
		d := &a.Decisions[i]
		e := entry(decided(d.Kind), d.At)
		e.By, e.Owner, e.Channel, e.Outcome = d.By, d.Owner, d.Channel, string(d.Kind)
		if d.Reason != "" {
			e.ReasonDigest = schema.Digest([]byte(d.Reason))
		}
		if d.Kind == ledger.Edit && a.Edited != nil && a.Edited.At.Equal(d.At) {
			e.ArgumentsDigest = a.Edited.ArgumentsDigest
		}
		all = append(all, e)
	}
	for _, r := range a.Restarts {
		e := entry(audit.Restarted, r.At)
		e.By, e.Owner, e.Level, e.PolicyVersion, e.Reason, e.ArgumentsDigest = r.By, r.Owner, r.Level, r.PolicyVersion, r.Reason, bound.ArgumentsDigest
		all = append(all, e)
	}
	if !a.Escalated.IsZero() {
		all = append(all, entry(audit.Escalated, a.Escalated))
	}
	if a.Spent != nil {
		e := entry(audit.Spent, a.Spent.At)
		e.By = a.Spent.By
		all = append(all, e)
	}
	if a.Runner != nil {
		e := entry(audit.Ran, a.Runner.Started)
		e.By, e.ArgumentsDigest = a.Runner.FrontDoor, bound.ArgumentsDigest
		all = append(all, e)
	}
	if kind, ok := ended[a.State]; ok && !a.Ended.IsZero() {
		e := entry(kind, a.Ended)
		e.Outcome, e.ArgumentsDigest, e.ResultDigest = string(a.State), bound.ArgumentsDigest, a.ResultDigest
		if a.State == ledger.Canceled {
			e.By, e.Owner = b.Requester.Name, b.Requester.Owner
		}
		if a.Error != nil {
			e.Error = string(a.Error.Kind)
		}
		all = append(all, e)
	}
	return all
}

func decided(kind ledger.DecisionKind) audit.Kind {
	switch kind {
	case ledger.Edit:
		return audit.Edited
	case ledger.Extend:
		return audit.Extended
	case ledger.Revoke:
		return audit.Revoked
	}
	return audit.Decided
}

// ended maps the final states that no decision accounts for to their audit kind.
var ended = map[ledger.State]audit.Kind{
	ledger.Succeeded: audit.Ended, ledger.Failed: audit.Ended, ledger.Unknown: audit.Ended,
	ledger.Expired: audit.Expired, ledger.Canceled: audit.Canceled,
}

// permissionHistory is [history] for a permission. Its uses are part of the history of the
// calls.
func permissionHistory(p *ledger.Permission) []audit.Entry {
	e := audit.Entry{
		Kind: audit.PermissionGiven, At: p.Given.UTC().Round(0), ApprovalID: p.ApprovalID, Tenant: p.Tenant, By: p.By, Owner: p.Owner, Channel: p.Channel,
		Server: p.Server, Tool: p.Tool, Level: p.Level, DefinitionDigest: p.ToolDefinitionDigest, PermissionID: p.ID,
		Outcome: string(p.Pattern.Kind) + " until " + p.Until.UTC().Format(time.RFC3339),
	}
	if p.MaxUses > 0 {
		e.Outcome += ", " + strconv.Itoa(p.MaxUses) + " uses"
	}
	if p.Reason != "" {
		e.ReasonDigest = schema.Digest([]byte(p.Reason))
	}
	all := []audit.Entry{e}
	if r := p.Revoked; r != nil {
		e.Kind, e.At, e.By, e.Owner, e.Channel, e.Outcome, e.ReasonDigest = audit.PermissionRevoked, r.At.UTC().Round(0), r.By, r.Owner, "", "", ""
		if r.Reason != "" {
			e.ReasonDigest = schema.Digest([]byte(r.Reason))
		}
		all = append(all, e)
	}
	return all
}

// line identifies an audit entry.
type line struct {
	kind     audit.Kind
	approval schema.ApprovalID
	at       int64
	by       string
}

func lineOf(e *audit.Entry) line { return line{e.Kind, e.ApprovalID, e.At.UnixNano(), e.By} }

// settled is the minimum age of an event before its missing entry is repaired; until then,
// another process may still be writing it.
const settled = 30 * time.Second

// Repair restores the audit entries that are missing for the given period before now, creates
// permissions that were granted but not stored, and removes those that ended long ago. It
// returns the number of entries that it wrote. If several processes repair at once, an entry
// may be written twice; both are marked as repaired.
func (d *Desk) Repair(ctx context.Context, back time.Duration) (lines int, err error) {
	lines, err = d.repair(ctx, back)
	d.repaired.Store(err == nil)
	return lines, err
}

// Repaired reports whether the last [Desk.Repair] of this process succeeded. If so, the audit
// entries of old events exist, and their approvals need not be kept for repairs.
func (d *Desk) Repaired() bool { return d.repaired.Load() }

func (d *Desk) repair(ctx context.Context, back time.Duration) (lines int, err error) {
	now := d.records.now()
	if err := d.Permissions.repair(ctx, now); err != nil {
		return 0, err
	}
	if d.records.audit == nil {
		return 0, nil
	}
	if err := d.records.audit.Sync(ctx); err != nil { // queued entries are not missing
		return 0, err
	}
	missing := map[line]audit.Entry{}
	since, until := now.Add(-back), now.Add(-settled)
	expect := func(all []audit.Entry) {
		for _, e := range all {
			if e.At.After(since) && e.At.Before(until) {
				missing[lineOf(&e)] = e
			}
		}
	}
	d.records.ledger.Each(schema.AllTenants(), func(a *ledger.Approval) {
		if a.Ended.IsZero() || a.Ended.After(since.Add(-time.Minute)) { // nothing follows the end, up to the differences of clocks
			expect(history(a))
		}
	})
	for _, p := range d.records.ledger.Permissions(schema.AllTenants()) {
		expect(permissionHistory(&p))
	}
	if len(missing) == 0 {
		return 0, nil
	}
	// Allow for clock skew, and for entries that are stored after their event.
	if err := d.records.audit.Since(ctx, schema.AllTenants(), since.Add(-time.Minute), func(r *audit.Record) bool {
		delete(missing, lineOf(&r.Entry))
		return len(missing) > 0
	}); err != nil {
		return 0, err
	}
	for _, e := range missing {
		e.Repaired = true
		if err := d.records.audit.Append(ctx, e); err != nil {
			return lines, err
		}
		lines++
	}
	return lines, nil
}
