package frontdoor_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// Labels and rows of usage are limited. A caller that fills them with names that it makes up would hide
// the calls of all others.
func TestNamesThatACallerMakesUpAreNeitherLabelsNorRowsOfUsage(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	conn := srv.Connect(t, "worker")
	polltest.Until(t, "a server that does not start", func() bool {
		err := conn.Announce(&schema.Worker{ID: "failing", Servers: []schema.Server{{ID: "broken", State: schema.StateError, Error: "It crashed."}}})
		_, _, list := d.do("GET", "/servers", "")
		return err == nil && strings.Contains(list, `"broken"`)
	})
	narrow := d.newKey(d.key, `{"name":"narrow","scopes":["tools:call:s","calls:read"],"tools":["s/read"]}`)
	for n, c := range []struct {
		key, path, body string
		status          int
	}{
		{narrow.Secret, "/servers/invented/tools/read", `{}`, http.StatusForbidden},
		{narrow.Secret, "/servers/s/tools/invented", `{}`, http.StatusForbidden},
		{narrow.Secret, "/calls", `{"server":"s","tool":"invented"}`, http.StatusForbidden},
		{narrow.Secret, "/servers/s/tools/write", `{}`, http.StatusForbidden}, // exists
		{d.key, "/servers/broken/tools/invented", `{}`, http.StatusServiceUnavailable},
		{d.key, "/servers/invented/tools/read", `{}`, http.StatusNotFound},
	} {
		for _, prefer := range []string{"wait=10", "respond-async"} {
			if status, _, text := d.with(c.key, "POST", c.path, c.body, "Prefer", prefer); status != c.status {
				t.Errorf("call %d, %s: %d %s", n, prefer, status, text)
			}
		}
	}
	_, _, metrics := d.do("GET", "/metrics", "")
	_, _, usage := d.do("GET", "/usage?by=tool", "")
	for what, text := range map[string]string{"the metrics": metrics, "the usage": usage} {
		if strings.Contains(text, "invented") {
			t.Errorf("a name that does not exist is in %s:\n%s", what, text)
		}
	}
	for _, want := range []string{
		`callyard_calls_total{outcome="forbidden",server="s",tool="write"} 2`,
		`callyard_calls_total{outcome="forbidden",server="s",tool="unknown"} 4`,
		`callyard_calls_total{outcome="forbidden",server="unknown",tool="unknown"} 2`,
		`callyard_calls_total{outcome="unavailable",server="broken",tool="unknown"} 2`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics have no line %s", want)
		}
	}
	if want := fmt.Sprintf(`"denied":%d`, 8); !strings.Contains(usage, want) {
		t.Errorf("usage is %s, without %s", usage, want)
	}
}
