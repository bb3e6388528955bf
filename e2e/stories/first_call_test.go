package stories

import (
	"net/http"
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

func TestFirstCallAtEveryFrontDoorSucceeds(t *testing.T) {
	f := sharedFabric(t)
	for _, door := range f.FrontDoors[:2] {
		c := caller(t, f, door.URL())
		servers, err := c.ListServersWithResponse(t.Context())
		must(t, err)
		must(t, callyard.Check(servers.HTTPResponse, servers.Body))
		there := false
		for _, s := range servers.JSON200.Servers {
			there = there || s.ID == "demo" && s.Connected
		}
		if !there {
			t.Errorf("%s does not list the server: %s", door.Name, servers.Body)
		}
		if got := resultText(t, calls(t, c, "demo", "echo", map[string]any{"message": "hello"})); got != "Echo: hello" {
			t.Errorf("the tool says %q", got)
		}
	}

	// The error of a faulty call describes the fault.
	wrong, err := caller(t, f, f.URL()).CallToolWithResponse(t.Context(), "demo", "add", nil, map[string]any{"a": "two"})
	must(t, err)
	if p := wrong.ApplicationProblemJSON422; p == nil || len(p.Errors) == 0 || p.Errors[0].Message == "" {
		t.Errorf("wrong arguments: %s %s", wrong.Status(), wrong.Body)
	}
	stranger, err := callyard.New(f.URL(), "another key", callyard.WithHTTPClient(httpClient(t)))
	must(t, err)
	refused, err := stranger.ListServersWithResponse(t.Context())
	must(t, err)
	if refused.StatusCode() != http.StatusUnauthorized {
		t.Errorf("a stranger: %s", refused.Status())
	}
}
