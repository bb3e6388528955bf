package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestTheApprovalDemoHasARequesterAndAnApprover(t *testing.T) {
	cfg := setup.Config{File: settings.Defaults()}
	d, err := newApprovalDemo(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	var asks, decides authn.Key = cfg.FrontDoor.Keys[0], cfg.Approver.Keys[0]
	if asks.Hash != authn.Hash(d.requester) || decides.Hash != authn.Hash(d.approver) || asks.Owner == decides.Owner || asks.Name == decides.Name {
		t.Errorf("%+v, %+v", asks, decides)
	}
	a := d.policy.Current().Assess(&risk.Input{Server: "demo", Tool: "add", Arguments: []byte(demoArguments), Principal: schema.Principal{Name: asks.Name}})
	if a.Approval == nil || a.Approval.By != risk.ByGroups || a.Approval.Groups[0] != decides.Groups[0] {
		t.Errorf("the demo call is assessed as %+v", a)
	}
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/calls" || r.Header.Get("Authorization") != "Bearer "+d.requester {
			t.Errorf("%s with key %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"outcome":"held","call_id":"call_1","approval_id":"appr_1"}`))
	}))
	defer door.Close()
	said := d.instructions(t.Context(), screen{}, door.URL, "http://pages")
	for _, want := range []string{d.requester, d.approver, "call_1", "http://pages/a/appr_1", door.URL + "/calls/call_1"} {
		if !strings.Contains(said, want) {
			t.Errorf("the screen lacks %s:\n%s", want, said)
		}
	}
	narrow := d.instructions(t.Context(), screen{width: 80}, door.URL, "http://127.0.0.1:8081")
	for line := range strings.Lines(narrow) {
		if n := columnsOf(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns on a terminal of 80: %s", n, line)
		}
	}
	for _, command := range []string{"curl -s \\\n    -H 'X-API-Key: " + d.requester + "' \\\n    " + door.URL + "/calls/call_1\n", "requester  demo-agent   key\n             " + d.requester + "\n"} {
		if !strings.Contains(narrow, command) {
			t.Errorf("the screen lacks %q:\n%s", command, narrow)
		}
	}
}

func TestApprovalDemoKeepsOperatorConfiguration(t *testing.T) {
	for name, change := range map[string]func(*setup.Config){
		"policy":          func(c *setup.Config) { c.Policy = "p.yaml" },
		"front_door.keys": func(c *setup.Config) { c.FrontDoor.Keys = []authn.Key{{Name: "a"}} },
		"servers file":    func(c *setup.Config) { c.Worker.Servers = "mcp.json" },
	} {
		cfg := setup.Config{File: settings.Defaults()}
		change(&cfg)
		if _, err := newApprovalDemo(&cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
