package frontdoor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// recorded is what GET /calls shows of the calls of the tool, by their ids.
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

// TestTheRecordOfAHeldCallEndsWithItsApproval denies one call and cancels another.
func TestTheRecordOfAHeldCallEndsWithItsApproval(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(openHouse(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{Policy: policyOf(t, "rules:\n  - {name: ask, match: {tool: write}, level: 2}\n")})
	held := func() (id, token string) {
		status, _, text := d.do("POST", "/servers/s/tools/write", `{}`)
		var told struct {
			CallID         string `json:"call_id"`
			ConfirmationID string `json:"confirmation_id"`
		}
		if err := json.Unmarshal([]byte(text), &told); err != nil || status != 202 || told.CallID == "" || told.ConfirmationID == "" {
			t.Fatalf("%d %s", status, text)
		}
		return told.CallID, told.ConfirmationID
	}
	denied, token := held()
	canceled, _ := held()
	waits, _ := held()
	if status, _, text := d.do("POST", "/confirmations/"+token, `{"confirm":false}`); status/100 != 2 {
		t.Fatalf("%d %s", status, text)
	}
	if status, _, text := d.do("POST", "/calls/"+canceled+"/cancel", ""); status/100 != 2 {
		t.Fatalf("%d %s", status, text)
	}
	var got map[string]string
	inTime(t, 20*time.Second, "the ends in the execution log", func() bool {
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
