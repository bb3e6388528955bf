package approval

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

// Claim gives an approved call to a runner. Of all who claim one wins; the
// others get KindConflict.
func (d *Desk) Claim(ctx context.Context, id, runner string) (*ledger.Approval, error) {
	return d.ledger.Change(ctx, id, func(a *ledger.Approval) error {
		if a.State != ledger.Approved {
			return schema.Errorf(schema.KindConflict, "Approval %s is %s, so there is nothing to claim.", a.ID, a.State).WithCall(a.CallID)
		}
		a.State, a.Runner = ledger.Running, &ledger.Runner{FrontDoor: runner, Started: d.now().UTC()}
		return nil
	})
}

// Call returns the call of an approval that this runner claimed, with exactly
// the bytes that were approved. The error is of KindInternal when the stored
// bytes are not those of the approval; then nothing may run.
func (d *Desk) Call(ctx context.Context, a *ledger.Approval) (*schema.Call, error) {
	args, err := d.ledger.Arguments(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	if bound := a.Bound(); digest.Of(args) != bound.ArgumentsDigest {
		return nil, schema.Errorf(schema.KindInternal, "The stored arguments are not those that were approved; nothing was run.").WithCall(a.CallID)
	}
	b := a.Binding
	return &schema.Call{
		ID: a.CallID, Server: b.Server, Tool: b.Tool, Arguments: args, ToolDigest: b.ToolDefinitionDigest,
		Timeout: a.Timeout, Safe: a.Safe, Approval: a.ID, Principal: schema.Principal{Name: b.Requester.Name, Owner: b.Requester.Owner},
	}, nil
}

// Finish records how a running call ended. It is written once; a late word for a
// call that was given up as unknown still counts.
func (d *Desk) Finish(ctx context.Context, id string, res *schema.Result, callErr error) (*ledger.Approval, error) {
	var sum string
	if callErr == nil {
		var err error
		if sum, err = d.ledger.PutResult(ctx, id, res.Body); err != nil {
			return nil, err
		}
	}
	return d.ledger.Change(ctx, id, func(a *ledger.Approval) error {
		switch {
		case callErr == nil:
			a.State, a.ResultDigest, a.ToolError = ledger.Succeeded, sum, res.ToolError
		case schema.KindOf(callErr) == schema.KindOutcomeUnknown:
			a.State, a.Error = ledger.Unknown, schema.AsError(callErr)
		default:
			a.State, a.Error = ledger.Failed, schema.AsError(callErr)
		}
		return nil
	})
}

// Tend expires, escalates and gives up what is due at the moment: alive says
// whether a runner still lives. It returns how many approvals changed. Any
// number of processes may do it at once.
func (d *Desk) Tend(ctx context.Context, alive func(runner string) bool) (changed int, err error) {
	now := d.now().UTC()
	for _, a := range d.open() {
		next := d.due(a, now, alive)
		if next == nil {
			continue
		}
		if _, changeErr := d.ledger.Change(ctx, a.ID, next); changeErr == nil {
			changed++
		} else if schema.KindOf(changeErr) != schema.KindConflict && err == nil {
			err = changeErr
		}
	}
	return changed, err
}

// open returns every approval that has not ended, as this process sees them.
func (d *Desk) open() (all []*ledger.Approval) {
	filter := ledger.Filter{States: []ledger.State{ledger.Pending, ledger.Approved, ledger.Running}, Limit: 1000}
	for cursor := ""; ; {
		page, next := d.ledger.List(filter, cursor)
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// runGrace is how long a call may run beyond its time, and its runner be
// unheard, before its fate counts as unknown.
const runGrace = 15 * time.Second

// due returns the change that an approval needs now, or nil. The change looks
// again, at the record as it is then.
func (d *Desk) due(a *ledger.Approval, now time.Time, alive func(string) bool) func(*ledger.Approval) error {
	unchanged := schema.Errorf(schema.KindConflict, "It has changed meanwhile.")
	switch a.State {
	case ledger.Pending, ledger.Approved:
		if !now.Before(a.Expires) {
			return func(a *ledger.Approval) error {
				if a.State != ledger.Pending && a.State != ledger.Approved || now.Before(a.Expires) {
					return unchanged
				}
				a.State = ledger.Expired
				return nil
			}
		}
		rule, err := Rule(a)
		if err != nil || a.State != ledger.Pending || rule.By != risk.ByGroups || len(rule.EscalateTo) == 0 || !a.Escalated.IsZero() {
			return nil
		}
		if half := a.Created.Add(a.Expires.Sub(a.Created) / 2); now.Before(half) {
			return nil
		}
		return func(a *ledger.Approval) error {
			if a.State != ledger.Pending || !a.Escalated.IsZero() {
				return unchanged
			}
			a.Escalated = now
			return nil
		}
	case ledger.Running:
		if a.Runner == nil || now.Sub(a.Runner.Started) < runGrace || alive(a.Runner.FrontDoor) && now.Sub(a.Runner.Started) < a.Timeout+runGrace {
			return nil
		}
		return func(a *ledger.Approval) error {
			if a.State != ledger.Running {
				return unchanged
			}
			a.State = ledger.Unknown
			a.Error = schema.Errorf(schema.KindOutcomeUnknown, "The process that ran the call was lost before it could say what came of it; the call may have run.").WithCall(a.CallID)
			return nil
		}
	}
	return nil
}
