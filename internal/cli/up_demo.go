package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/pkg/risk"
)

// demoPolicy holds the calls of one demo tool until a member of a group approves.
const demoPolicy = `rules:
  - name: additions need an approval
    match: {server: demo, tool: add}
    approval: {groups: [approvers], expires: 1h}
`

const demoArguments = `{"a":2,"b":3}`

// approvalDemo holds the additions of `up --demo-approvals`: a policy, a requester and an approver.
// Their keys are created at each start and exist only in this process.
type approvalDemo struct {
	policy               *risk.Holder
	requester, approver  string // their API keys
	requesterID, decider string // their names
}

// newApprovalDemo adds the two identities to the configuration. It returns an error if the
// configuration already has identities, servers or a policy.
func newApprovalDemo(cfg *setup.Config) (*approvalDemo, error) {
	for _, given := range []struct {
		name string
		is   bool
	}{
		{"a policy", cfg.Policy != ""}, {"front_door.keys", len(cfg.FrontDoor.Keys) > 0}, {"approver.keys", len(cfg.Approver.Keys) > 0},
		{"approver.oidc", cfg.Approver.OIDC.Configured()}, {"approver.local_groups", len(cfg.Approver.LocalGroups) > 0}, {"a servers file", cfg.Worker.Servers != ""},
	} {
		if given.is {
			return nil, fail(exitUsage, "--demo-approvals has its own policy, keys and server, but the configuration has %s: remove one of them", given.name)
		}
	}
	p, err := risk.Parse([]byte(demoPolicy), "the demo policy")
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	d := &approvalDemo{policy: risk.NewHolder(p), requesterID: "demo-agent", decider: "ann"}
	var asks, decides string
	d.requester, asks = authn.Generate()
	d.approver, decides = authn.Generate()
	cfg.FrontDoor.Keys = []authn.Key{{Name: d.requesterID, Owner: "demo team", Groups: []string{"agents"}, Hash: asks}}
	cfg.Approver.Keys = []authn.Key{{Name: d.decider, Owner: d.decider, Groups: []string{"approvers"}, Hash: decides}}
	return d, nil
}

// holdFor limits the time of the call that is held at the start.
const holdFor = 10 * time.Second

// instructions holds a call and returns instructions to try.
func (d *approvalDemo) instructions(ctx context.Context, base, pages string) string {
	call := fmt.Sprintf("curl -s -H 'X-API-Key: %s' --json '%s' %s/servers/demo/tools/add", d.requester, demoArguments, base)
	text := fmt.Sprintf("Approval demo\n  requester  %-12s key %s\n  approver   %-12s key %s\n  sign in    %s\n", d.requesterID, d.requester, d.decider, d.approver, pages)
	held, err := d.hold(ctx, base)
	if err != nil {
		return text + fmt.Sprintf("\nThe demo call could not be held: %v\nHold one:  %s\n", err, call)
	}
	return text + fmt.Sprintf("  held call  %s\n\nSign in as %s, approve the call at %s/a/%s, then read its result:\n\n  curl -s -H 'X-API-Key: %s' %s/calls/%s\n\nHold another:\n\n  %s\n",
		held.CallID, d.decider, pages, held.ApprovalID, d.requester, base, held.CallID, call)
}

// hold sends the call as the requester.
func (d *approvalDemo) hold(ctx context.Context, base string) (*callyard.ConfirmationRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, holdFor)
	defer cancel()
	client, err := callyard.New(base, d.requester, callyard.WithRetries(0))
	if err != nil {
		return nil, err
	}
	_, err = client.Call(ctx, "demo", "add", json.RawMessage(demoArguments))
	var held *callyard.HeldError
	switch {
	case errors.As(err, &held):
		return &held.Request, nil
	case err == nil:
		err = errors.New("it ran at once")
	}
	return nil, err
}
