package cli

import (
	"strings"
	"testing"
)

func TestTheDoctorReportsAcceptedLosses(t *testing.T) {
	door := healthyFrontDoor()
	door.answers["/health"] = jsonAnswer(`{"status":"ok","accepted_losses":{"files":2,"latest":"2026-01-01T00:00:00Z","streams":["callyard_calls","callyard_keys"]}}`)
	said, code := runDoctor(t, door.open(t), healthyApprover().open(t))
	if !strings.Contains(said, "note") || !strings.Contains(said, "2 damaged files were accepted as lost, with messages of callyard_calls, callyard_keys, the last at 2026-01-01T00:00:00Z") || code != 0 {
		t.Errorf("%d: %s", code, said)
	}
	said, _ = runDoctor(t, healthyFrontDoor().open(t), healthyApprover().open(t))
	if strings.Contains(said, "accepted") {
		t.Errorf("nothing was lost: %s", said)
	}
}
