package rest

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestTheOutcomeStandsBehindTheBytesOfTheServer(t *testing.T) {
	for given, want := range map[string]string{
		`{}`:                  `{"outcome":"completed"}`,
		"{ \n}":               "{ \n" + `"outcome":"completed"}`,
		`{"content":[ ]} `:    `{"content":[ ],"outcome":"completed"}`,
		`{"a":{"outcome":1}}`: `{"a":{"outcome":1},"outcome":"completed"}`,
		`{"outcome":"held"}`:  `{"outcome":"completed"}`,
		`{"a": 1.0,"outcome":{"x":[1,2]},"b" :2}`: `{"a": 1.0,"b" :2,"outcome":"completed"}`,
		`7`: `7`,
	} {
		if got := string(withOutcome([]byte(given), outcomeCompleted)); got != want {
			t.Errorf("%s is %s, want %s", given, got, want)
		}
	}
}

func TestEveryAnswerToACallTellsItsOutcome(t *testing.T) {
	f := openFabric(t, nil)
	const call = `{"server":"demo","tool":"echo","arguments":{"message":"x"}}`
	for what, row := range map[string]struct {
		header  []string
		status  int
		outcome string
	}{
		"a call":                  {nil, http.StatusOK, outcomeCompleted},
		"a call with a key":       {[]string{"Idempotency-Key", "k"}, http.StatusOK, outcomeCompleted},
		"a call that is stored":   {[]string{"Prefer", "respond-async"}, http.StatusAccepted, outcomeAccepted},
		"a call that is awaited":  {[]string{"Prefer", "wait=30"}, http.StatusOK, outcomeCompleted},
		"the same key once again": {[]string{"Idempotency-Key", "k"}, http.StatusOK, outcomeCompleted},
	} {
		a := f.do("POST", "/calls", call, row.header...)
		var is struct{ Outcome string }
		if err := json.Unmarshal(a.body, &is); err != nil || a.status != row.status || is.Outcome != row.outcome {
			t.Errorf("%s: %d %s, want %d and %s", what, a.status, a.body, row.status, row.outcome)
		}
	}
}
