package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
func (d *approvalDemo) instructions(ctx context.Context, out screen, base, pages string) string {
	identity := func(role, name, key string) string {
		return out.sentences(fmt.Sprintf("  %-9s  %-12s key %s", role, name, key), 11)
	}
	curl := []string{"curl -s", "-H 'X-API-Key: " + d.requester + "'"}
	call := out.commandLine(append(slices.Clone(curl), "--json '"+demoArguments+"'", base+"/servers/demo/tools/add")...)
	text := "Approval demo\n" + identity("requester", d.requesterID, d.requester) + "\n" + identity("approver", d.decider, d.approver) + "\n  sign in    " + pages + "\n"
	held, err := d.hold(ctx, base)
	if err != nil {
		return text + "\n" + out.sentences(fmt.Sprintf("The demo call could not be held: %v", err), 0) + "\nHold one:\n\n" + call
	}
	next := out.sentences(fmt.Sprintf("Sign in as %s, approve the call at %s/a/%s, then read its result:", d.decider, pages, held.ApprovalID), 0)
	return text + "  held call  " + held.CallID + "\n\n" + next + "\n\n" + out.commandLine(append(curl, base+"/calls/"+held.CallID)...) + "\nHold another:\n\n" + call
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
