package frontdoor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
)

// TestPolicyDoesNotDecideAgainOnACallWhoseApprovalMayBeStored answers the write of an approval so that it is
// unknown whether it was stored. By then the policy allows the call: if it ran, it would run once more when an
// approval that was stored is given.
func TestPolicyDoesNotDecideAgainOnACallWhoseApprovalMayBeStored(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	h.let()
	policy := policyOf(t, "rules: [{name: ask, match: {tool: write}, level: 2, approval: {by: caller, expires: 1h}}]")
	d := openDoor(t, srv, frontdoor.Options{Policy: policy})
	js := bustest.JetStream(t, srv.URL)
	written, err := js.Conn().SubscribeSync(bus.SubjectApproval + ">")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), bus.StreamLedger)
	if err != nil {
		t.Fatal(err)
	}
	kept := stream.CachedInfo().Config
	update := func(subjects []string) {
		t.Helper()
		moved := kept
		moved.Subjects = subjects
		if _, err := js.UpdateStream(t.Context(), moved); err != nil {
			t.Fatal(err)
		}
	}
	update([]string{"elsewhere"})
	_, header, _ := d.do("POST", "/batches", batchOf(1, "write", true)+strings.ReplaceAll(batchOf(1, "read", true), "c0", "c1"))
	batch := header.Get("Location")
	write, err := written.NextMsg(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	allows, err := risk.Parse([]byte("rules: [{name: run, match: {tool: write}, level: 1}]"), "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy.Replace(allows)
	update(kept.Subjects)
	if err := write.Respond([]byte("?")); err != nil {
		t.Fatal(err)
	}
	polltest.Within(t, time.Minute, "the call is held or runs", func() bool {
		for _, states := range d.listed(batch) {
			if strings.Contains(states, "held") {
				return true
			}
		}
		return h.runs.Load() == 2
	})
	if runs := h.runs.Load(); runs != 1 {
		t.Errorf("%d calls ran", runs)
	}
}
