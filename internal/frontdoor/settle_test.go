package frontdoor_test

import (
	"net/http"
	"strings"
	"testing"
)

// The keys of programs cannot settle calls, so people settle the calls of the programs of their tenant.
func TestAdministratorsSettleTheCallsOfOthers(t *testing.T) {
	e := openTenantAdminFabric(t, true)
	operator := e.newKey(e.keys["default-root"], `{"name":"operator","role":"platform-admin"}`).Secret
	by := []string{"red-dev", "red-dev", "red-admin"}
	paths := make([]string, len(by))
	for i, name := range by {
		status, h, answer := e.with(e.keys[name], "POST", "/servers/s/tools/write", `{"v":"secret-unknown"}`, "Prefer", "respond-async")
		if paths[i] = h.Get("Location"); status != http.StatusAccepted {
			t.Fatalf("%d %s", status, answer)
		}
	}
	for i, name := range by { // each waits until its worker does not answer the question for the outcome
		if s := e.must(http.StatusOK, e.keys[name], "GET", paths[i]+"?wait=60", ""); !strings.Contains(s, `"state":"unknown"`) {
			t.Fatal(s)
		}
	}
	settle := func(status int, key, path string) string {
		t.Helper()
		return e.must(status, key, "POST", path+"/settle", `{"as":"done","reason":"it is in the books"}`)
	}
	first, second, third := paths[0], paths[1], paths[2]
	settle(http.StatusForbidden, e.keys["red-dev"], first)
	foreign := settle(http.StatusNotFound, e.keys["blue-admin"], first)
	settle(http.StatusNotFound, e.keys["default-admin"], first)
	if none := settle(http.StatusNotFound, e.keys["blue-admin"], strings.Replace(first, "-s", "-s9", 1)); strings.Contains(foreign, "red") || strings.Contains(none, "lane") {
		t.Errorf("a foreign call: %s; no call: %s", foreign, none)
	}
	if s := settle(http.StatusOK, e.keys["red-admin"], first); !strings.Contains(s, `"settled":"red-admin: it is in the books"`) || !strings.Contains(s, `"state":"succeeded"`) {
		t.Error(s)
	}
	settle(http.StatusConflict, e.keys["red-admin"], first)
	settle(http.StatusOK, operator, second)
	settle(http.StatusOK, e.keys["red-admin"], third)
	for _, path := range []string{first, second} { // its caller sees the outcome
		if s := e.must(http.StatusOK, e.keys["red-dev"], "GET", path, ""); !strings.Contains(s, `"settled":"`) {
			t.Error(s)
		}
	}
}
