package catalog

import (
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestLaggingApproverIsReported(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	c.Announce(func() schema.FrontDoor {
		return schema.FrontDoor{InForce: []schema.InForce{{Part: schema.PartPolicy, Version: "new"}, {Part: schema.PartKeys, Version: "of callers"}}}
	})
	approver := srv.Connect(t, "approver")
	announced := func(id, policy string) func() bool {
		return func() bool {
			if err := approver.AnnounceApprover(id, []schema.InForce{{Part: schema.PartPolicy, Version: policy}, {Part: schema.PartKeys, Version: "of people"}}, ""); err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(c.Processes(), func(p Process) bool {
				return p.ID == id && p.Role == RoleApprover && p.InForce[0].Version == policy
			})
		}
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		deadline := time.After(time.Minute)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for !ok() {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("never: %s: %+v", what, c.Processes())
			}
		}
	}
	until("the approver is known", announced("a1", "old"))
	got := Disagreements(c.Processes())
	if len(got) != 1 || got[0].Part != schema.PartPolicy || !slices.Equal(got[0].Versions["old"], []string{"a1"}) {
		t.Errorf("found %+v", got)
	}
	until("the approver has the new policy", announced("a1", "new"))
	if got := Disagreements(c.Processes()); len(got) > 0 {
		t.Errorf("the keys of callers and those of people are different lists, and yet: %+v", got)
	}
	until("the key of the approver is known", func() bool {
		if err := approver.AnnounceApprover("a1", nil, "k1"); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(c.Processes(), func(p Process) bool { return p.ID == "a1" && p.Signer == "k1" })
	})
	until("a silent approver is forgotten", func() bool { return len(c.Processes()) == 1 })
}
