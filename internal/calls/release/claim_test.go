package release

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Calls of a server that has not started again, for example, wait until its tools are known.
func TestCallsThatCannotBeClaimedDoNotKeepOthersWaiting(t *testing.T) {
	conn, quiet := bustest.Start(t).Connect(t, "front"), slog.New(slog.DiscardHandler)
	l, err := ledger.Open(t.Context(), conn, ledger.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	router, err := dispatch.New(conn, "door", dispatch.Options{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	tools, err := catalog.Open(t.Context(), conn, router, "door", catalog.Finding{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tools.Close)
	desk := approval.New(approval.Options{Ledger: l, Log: quiet, Assess: func(_ context.Context, a *ledger.Approval, _ []byte) (risk.Assessment, error) {
		if a.Binding.Server == "starting" {
			return risk.Assessment{}, schema.Errorf(schema.KindUnavailable, "Its tools are not known yet.")
		}
		return risk.Assessment{}, nil
	}})
	approve := func(server schema.ServerID) (id schema.ApprovalID) {
		t.Helper()
		call := &schema.Call{ID: schema.NewCallID(), Server: server, Tool: "pay", Arguments: []byte(`{}`), Principal: schema.Principal{Name: "ci"}}
		held, err := desk.Open(t.Context(), call, json.RawMessage(`{}`), &risk.Assessment{Level: risk.Medium, Approval: &risk.Approval{By: risk.ByCaller, Needed: 1, Expires: time.Hour}}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Change(t.Context(), "", held.Approval.ID, func(a *ledger.Approval) error {
			a.State = ledger.Approved
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return held.Approval.ID
	}
	for range releasing {
		approve("starting")
	}
	other := approve("bank") // nobody runs this server, so the call fails at once
	r := Start(Options{FrontDoor: "door", Gate: admission.NewGate(admission.Options{Catalog: tools}), Desk: desk, Ledger: l, Catalog: tools, Log: quiet})
	defer r.Close()
	polltest.Until(t, "the end of the call to another server", func() bool {
		a, err := l.Known(t.Context(), schema.AllTenants(), other)
		return err == nil && a.State == ledger.Failed
	})
}
