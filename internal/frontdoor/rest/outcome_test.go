package rest

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestEveryCallResponseContainsItsOutcome(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const call = `{"server":"demo","tool":"echo","arguments":{"message":"x"}}`
	for what, row := range map[string]struct {
		header  []string
		status  int
		outcome string
	}{
		"a call":                  {nil, http.StatusOK, "completed"},
		"a call with a key":       {[]string{"Idempotency-Key", "k"}, http.StatusOK, "completed"},
		"a call that is stored":   {[]string{"Prefer", "respond-async"}, http.StatusAccepted, "accepted"},
		"a call that is awaited":  {[]string{"Prefer", "wait=30"}, http.StatusOK, "completed"},
		"the same key once again": {[]string{"Idempotency-Key", "k"}, http.StatusOK, "completed"},
	} {
		a := f.do("POST", "/calls", call, row.header...)
		var is struct{ Outcome string }
		if err := json.Unmarshal(a.body, &is); err != nil || a.status != row.status || is.Outcome != row.outcome {
			t.Errorf("%s: %d %s, want %d and %s", what, a.status, a.body, row.status, row.outcome)
		}
	}
}
