package credential

import (
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

// TestSealedCredentialIsBoundToItsCall replays the response for a call of one tenant as
// the response to a request of another tenant's call, as a worker or a reader of NATS could.
func TestSealedCredentialIsBoundToItsCall(t *testing.T) {
	w := newTestServers(t)
	b := w.book(t, nil)
	red, blue := schema.Principal{Name: "ann", Tenant: "red"}, schema.Principal{Name: "ann", Tenant: "blue"}
	if err := b.SetSecret(t.Context(), "jira", Person(&red), "canary-red"); err != nil {
		t.Fatal(err)
	}
	const address = "https://jira.example/mcp"
	ours, theirs := schema.NewCallID(), schema.NewCallID()
	question, err := Ask(ours, "jira", address, 0)
	if err != nil {
		t.Fatal(err)
	}
	answer := b.Answer(t.Context(), ours, "jira", &red, question.Message)
	if c, err := question.Open(answer); err != nil || c.Value != "canary-red" {
		t.Fatalf("%v, %v", c, err)
	}
	other, err := Ask(theirs, "jira", address, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := other.Open(answer); err == nil {
		t.Errorf("another question opens it: %v", c)
	}
	// The worker keeps the key of a request, and claims that it was for another call.
	other.key = question.key
	if c, err := other.Open(answer); err == nil {
		t.Errorf("it is opened for a call of another tenant: %v", c)
	}
	// The front door uses the call that it sent, regardless of the requester.
	if _, err := question.Open(b.Answer(t.Context(), theirs, "jira", &blue, question.Message)); schema.KindOf(err) != schema.KindConnectRequired {
		t.Errorf("the question for the other call: %v", err)
	}
}
