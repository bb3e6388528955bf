package frontdoor_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestAKeyIsHeldToItsOwnLimits(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	slow, hash := authn.Generate()
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{Keys: []authn.Key{{Name: "slow", Hash: hash, Limits: scope.Limits{Rate: 0.001, Burst: 2}}}}})
	made := d.newKey(d.key, `{"name":"made","scopes":["tools:call","admin"],"limits":{"rate":0.001,"burst":2}}`)
	call := func(key string) (int, http.Header, string) {
		return d.with(key, "POST", "/servers/s/tools/read", "{}")
	}
	for name, key := range map[string]string{"of the configuration": slow, "made at run time": made.Secret} {
		for range 2 {
			if status, _, answer := call(key); status != 200 {
				t.Fatalf("%s: %d %s", name, status, answer)
			}
		}
		if status, h, answer := call(key); status != 429 || h.Get("Retry-After") == "" || !strings.Contains(answer, "0.001 calls per second") {
			t.Errorf("%s: %d %v %s", name, status, h, answer)
		}
	}
	for range 5 {
		if status, _, answer := call(d.key); status != 200 {
			t.Fatalf("a key without limits: %d %s", status, answer)
		}
	}
	for body, want := range map[string]int{
		`{"name":"x","scopes":["admin"],"limits":{"rate":-1}}`: 400, `{"name":"x","scopes":["admin"],"limits":{"burst":1}}`: 400, `{"name":"x","scopes":["admin"],"limits":7}`: 400, `{"name":"x","scopes":["admin"],"limits":{"more":1}}`: 400,
	} {
		if status, _, answer := d.with(d.key, "POST", "/keys", body); status != want {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	// A key cannot grant more than it has.
	if status, _, answer := d.with(made.Secret, "POST", "/keys", `{"name":"wide","scopes":["tools:call"]}`); status != 403 {
		t.Errorf("%d %s", status, answer)
	}
	if status, _, answer := d.with(made.Secret, "POST", "/keys", `{"name":"narrow","scopes":["tools:call"],"limits":{"rate":0.0005,"burst":1}}`); status != 201 {
		t.Errorf("%d %s", status, answer)
	}
	// A change is effective at once. {} removes the limits.
	if status, _, answer := d.with(d.key, "PATCH", "/keys/"+made.ID, `{"limits":{}}`, "If-Match", "*"); status != 200 || strings.Contains(answer, `"limits"`) {
		t.Fatalf("%d %s", status, answer)
	}
	polltest.Within(t, 10*time.Second, "calls without the limits", func() bool { status, _, _ := call(made.Secret); return status == 200 })
}
