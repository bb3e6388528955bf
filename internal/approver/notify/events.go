package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

// Types of approval events.
const (
	Asked     = "approval.asked"
	Decided   = "approval.decided" // one person's answer; a revocation has its own type
	Revoked   = "approval.revoked"
	Escalated = "approval.escalated"
	Restarted = "approval.restarted" // needs new approvals, under another rule
	Expired   = "approval.expired"
	Ended     = "approval.ended" // the call of an approval ran, or was withdrawn
)

// Types returns all event types.
func Types() []string { return []string{Asked, Decided, Revoked, Escalated, Restarted, Expired, Ended} }

// event is an event with its ID. The ID is deterministic: every process computes the same ID for
// the same event.
type event struct {
	id   string
	told webhook.Event
}

// data is the payload for receivers. It has no arguments, results or reasons: people who may see
// them read them on the page.
type data struct {
	ID            schema.ApprovalID `json:"id"`
	CallID        schema.CallID     `json:"call_id"`
	State         string            `json:"state"`
	URL           string            `json:"url"`
	Server        schema.ServerID   `json:"server"`
	Tool          string            `json:"tool"`
	RiskLevel     int               `json:"risk_level"`
	Requester     person            `json:"requester"`
	Groups        []string          `json:"groups"`
	EscalateTo    []string          `json:"escalate_to,omitempty"`
	Needed        int               `json:"needed"`
	ApprovalCount int               `json:"approval_count"`
	Created       time.Time         `json:"created_at"`
	Expires       time.Time         `json:"expires_at"`
	Arguments     string            `json:"arguments_digest"`
	Decision      *answer           `json:"decision,omitempty"`
	EndedAt       time.Time         `json:"ended_at,omitzero"`
	ToolError     bool              `json:"tool_error,omitempty"`
	ErrorKind     string            `json:"error,omitempty"`
	EscalatedAt   time.Time         `json:"escalated_at,omitzero"`
	Restart       *restart          `json:"restart,omitempty"`
}

type restart struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	By     *person   `json:"by,omitempty"`
}

type person struct {
	Name  string `json:"name"`
	Owner string `json:"owner,omitempty"`
}

type answer struct {
	Kind    string    `json:"kind"`
	By      person    `json:"by"`
	Channel string    `json:"channel,omitempty"`
	At      time.Time `json:"at"`
}

// events returns the events of an approval. Their order depends only on the record. It returns nil
// if no groups were asked. link is the address of the approval's page.
func events(a *ledger.Approval, link string) []event {
	rule, err := approval.Rule(a)
	if err != nil || a.Permission != "" || len(rule.Groups) == 0 {
		return nil
	}
	base := data{
		ID: a.ID, CallID: a.CallID, State: string(a.State), URL: link, Server: a.Binding.Server, Tool: a.Binding.Tool, RiskLevel: a.Bound().Level,
		Requester: person{a.Binding.Requester.Name, a.Binding.Requester.Owner}, Groups: rule.Groups, EscalateTo: rule.EscalateTo,
		Needed: max(rule.Needed, 1), ApprovalCount: approval.ApprovalCount(a), Created: a.Created, Expires: a.Expires, Arguments: a.Bound().ArgumentsDigest, EscalatedAt: a.Escalated,
	}
	var all []event
	add := func(kind string, at time.Time, d data) {
		body, err := json.Marshal(d)
		if err != nil {
			return // cannot happen: strings, numbers and times of this package
		}
		all = append(all, event{idOf(a.ID, kind, at), webhook.Event{Type: kind, Time: at, Data: body}})
	}
	add(Asked, a.Created, base)
	if !a.Escalated.IsZero() {
		add(Escalated, a.Escalated, base)
	}
	for _, r := range a.Restarts {
		d := base
		d.Restart = &restart{At: r.At, Reason: r.Reason}
		if r.By != "" {
			d.Restart.By = &person{r.By, r.Owner}
		}
		add(Restarted, r.At, d)
	}
	for _, dec := range a.Decisions {
		d, kind := base, Decided
		if dec.Kind == ledger.Revoke {
			kind = Revoked
		}
		d.Decision = &answer{Kind: string(dec.Kind), By: person{dec.By, dec.Owner}, Channel: dec.Channel, At: dec.At}
		add(kind, dec.At, d)
	}
	if a.State.Ended() && !a.Ended.IsZero() {
		d := base
		d.EndedAt, d.ToolError = a.Ended, a.ToolError
		if a.Error != nil {
			d.ErrorKind = string(a.Error.Kind)
		}
		switch a.State {
		case ledger.Denied, ledger.Revoked: // already reported as a decision
		case ledger.Expired:
			add(Expired, a.Ended, d)
		default:
			add(Ended, a.Ended, d)
		}
	}
	return all
}

// idOf returns the webhook-id header of an event.
func idOf(approval schema.ApprovalID, kind string, at time.Time) string {
	sum := sha256.Sum256([]byte(string(approval) + "\n" + kind + "\n" + at.UTC().Format(time.RFC3339Nano)))
	return "evt_" + hex.EncodeToString(sum[:])[:40]
}
