package config

import (
	"slices"
	"strings"
	"testing"
)

func TestAttachEntriesAreRead(t *testing.T) {
	servers, err := LoadServers(adaptedFile(t, `{"attach": true, "attach_keys": ["sha256:00", "sha256:11"], "riskLevel": 2, "sessions": 8}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := servers.Entries[0]; e.Type != TypeAttach || !slices.Equal(e.Attach.Keys, []string{"sha256:00", "sha256:11"}) || e.Risk != 2 || e.Sessions != 8 {
		t.Errorf("got %+v", e)
	}
}

func TestFaultsOfAttachEntriesAreReported(t *testing.T) {
	const keys = `"attach_keys": ["sha256:00"]`
	for entry, want := range map[string]string{
		`{"attach": true}`:                                         "callyard keys attach s",
		`{"attach": false, ` + keys + `}`:                          "write true",
		`{"attach": true, "command": "x", ` + keys + `}`:           "needs exactly one transport",
		`{"attach": true, "docker": {"image": "x"}, ` + keys + `}`: "cannot run in a container",
		`{"attach": true, "riskLevel": 3, ` + keys + `}`:           "write 1 or 2",
		`{"attach": true, "onDemand": true, ` + keys + `}`:         "are not started here",
		`{"attach": true, "type": "http", ` + keys + `}`:           "remove it",
		`{"attach": true, "roots": ["/"], ` + keys + `}`:           "is for a server with",
		`{"command": "x", ` + keys + `}`:                           "is for a server with",
		`{"builtin": "calculator", ` + keys + `}`:                  "is for a server with",
	} {
		if _, err := LoadServers(adaptedFile(t, entry), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	if _, err := ParseServer("x", []byte(`{"attach": true, `+keys+`}`)); err == nil || !strings.Contains(err.Error(), "the operator adds the server to the servers file") {
		t.Errorf("in a request: %v", err)
	}
}
