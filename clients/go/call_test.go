package callyard

import (
	"encoding/json"
	"testing"
)

func TestNilArgumentsAreAnEmptyObject(t *testing.T) {
	for name, arguments := range map[string]any{
		"nil": nil, "a nil map": map[string]any(nil), "a nil pointer": (*struct{ Message string })(nil),
	} {
		doer := &refusing{}
		client, err := New("http://callyard.test", "", WithHTTPClient(doer))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call(t.Context(), "demo", "echo", arguments); err != nil {
			t.Fatal(err)
		}
		if want := `{"server":"demo","tool":"echo"}`; doer.bodies[0] != want {
			t.Errorf("%s: sent %s, want %s", name, doer.bodies[0], want)
		}
	}
}

func TestCallErrorNamesTheReason(t *testing.T) {
	const call = `"id":"call_1","server":"demo","tool":"add","created":"2026-01-02T03:04:05Z"`
	for document, want := range map[string]string{
		`{` + call + `,"state":"canceled"}`:                                 "call call_1 of demo/add ended as canceled",
		`{` + call + `,"state":"failed","problem":{"detail":"It failed."}}`: "call call_1 of demo/add ended as failed: It failed.",
		`{` + call + `,"state":"denied","decisions":[{"by":"bo","kind":"approve","reason":"yes"},{"by":"ann","kind":"deny","reason":"too expensive"}]}`: "call call_1 of demo/add ended as denied by ann: too expensive",
		`{` + call + `,"state":"denied","decisions":[{"by":"ann","kind":"revoke"}]}`:                                                                    "call call_1 of demo/add ended as denied by ann",
		`{` + call + `,"state":"denied","problem":{"detail":"It did not run."}}`:                                                                        "call call_1 of demo/add ended as denied: It did not run.",
	} {
		e := &CallError{}
		if err := json.Unmarshal([]byte(document), &e.Call); err != nil {
			t.Fatal(err)
		}
		if got := e.Error(); got != want {
			t.Errorf("%s is %q, want %q", document, got, want)
		}
	}
}
