package frontdoor_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// recorded returns the states of the calls of the tool in GET /calls, by ID.
func (d *door) recorded(tool string) map[string]string {
	d.t.Helper()
	var page struct {
		Calls []struct {
			ID, State  string
			ApprovalID string `json:"approval_id"`
			EndedAt    string `json:"ended"`
		}
	}
	_, _, text := d.do("GET", "/calls?tool="+tool, "")
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		d.t.Fatal(err, text)
	}
	states := map[string]string{}
	for _, c := range page.Calls {
		states[c.ID] = c.State
		if c.State != "held" && (c.ApprovalID == "" || c.EndedAt == "") {
			d.t.Errorf("%+v has neither an approval nor a time", c)
		}
	}
	return states
}

// hold submits a call that is held and returns its ID and its token.
func (d *door) hold() (id, token string) {
	d.t.Helper()
	status, _, text := d.do("POST", "/servers/s/tools/write", `{}`)
	var told struct {
		CallID         string `json:"call_id"`
		ConfirmationID string `json:"confirmation_id"`
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil || status != 202 || told.CallID == "" || told.ConfirmationID == "" {
		d.t.Fatalf("%d %s", status, text)
	}
	return told.CallID, told.ConfirmationID
}

// TestHeldCallRecordEndsWithItsApproval denies one call and cancels another.
func TestHeldCallRecordEndsWithItsApproval(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{Policy: policyOf(t, "rules:\n  - {name: ask, match: {tool: write}, level: 2}\n")})
	denied, token := d.hold()
	canceled, _ := d.hold()
	waits, _ := d.hold()
	if status, _, text := d.do("POST", "/confirmations/"+token, `{"confirm":false}`); status/100 != 2 {
		t.Fatalf("%d %s", status, text)
	}
	if status, _, text := d.do("POST", "/calls/"+canceled+"/cancel", ""); status/100 != 2 {
		t.Fatalf("%d %s", status, text)
	}
	var got map[string]string
	polltest.Within(t, 30*time.Second, "the ends in the call records", func() bool {
		got = d.recorded("write")
		return got[denied] != "held" && got[canceled] != "held"
	})
	if got[denied] != "denied" || got[canceled] != "canceled" || got[waits] != "held" {
		t.Errorf("%v", got)
	}
	if _, _, text := d.do("GET", "/usage", ""); !strings.Contains(text, `"denied":1,`) || !strings.Contains(text, `"canceled":1,`) || !strings.Contains(text, `"held":3,`) {
		t.Errorf("usage says %s", text)
	}
}

func TestHeldCallRecordShowsExpiry(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{Policy: policyOf(t, "rules:\n  - {name: ask, match: {tool: write}, level: 2, approval: {by: caller, expires: 1s}}\n")})
	began := time.Now()
	id, _ := d.hold()
	if got := d.recorded("write"); got[id] != "held" && time.Since(began) < time.Second { // on a busy machine it may have expired
		t.Errorf("at first: %v", got)
	}
	polltest.Within(t, 30*time.Second, "the end in the call records", func() bool { return d.recorded("write")[id] == "expired" })
	polltest.Within(t, 30*time.Second, "the end in usage", func() bool {
		_, _, text := d.do("GET", "/usage", "")
		return strings.Contains(text, `"expired":1,`)
	})
}

// TestFrontDoorRecordsCallsThatExpiredWithoutIt lets calls expire while only an approver is running.
func TestFrontDoorRecordsCallsThatExpiredWithoutIt(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	o := frontdoor.Options{Policy: policyOf(t, "rules:\n  - {name: ask, match: {tool: write}, level: 2}\n")}
	var first, second string
	t.Run("two calls are held", func(t *testing.T) {
		d := openDoor(t, srv, o)
		first, _ = d.hold()
		second, _ = d.hold()
		polltest.Within(t, 30*time.Second, "two held calls", func() bool { return len(d.recorded("write")) == 2 })
	})
	l, err := ledger.Open(t.Context(), srv.Connect(t, "approver"), ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	desk := approval.New(approval.Options{Ledger: l, Now: func() time.Time { return time.Now().Add(11 * time.Minute) }, Log: slog.New(slog.DiscardHandler)})
	if n, err := desk.Reconcile(t.Context(), func(string) bool { return false }); n != 2 || err != nil {
		t.Fatalf("%d calls have expired: %v", n, err)
	}
	t.Run("a front door starts", func(t *testing.T) {
		d := openDoor(t, srv, o)
		polltest.Within(t, 30*time.Second, "the ends in the call records", func() bool {
			got := d.recorded("write")
			return got[first] == "expired" && got[second] == "expired"
		})
	})
}
