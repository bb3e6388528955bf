package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// resourcesClosed is a policy that denies the resources of two servers; those of a third one
// are denied by its risk level.
const resourcesClosed = `
rules:
  - name: closed
    match: {server: denied}
    deny: nothing of this server is for models
  - name: asked
    match: {server: people}
    level: 2
    approval: {groups: [ops]}
`

func TestUnreadableResourceCannotBeSubscribedTo(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, resourcesClosed)
	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"denied": scripted(mcptest.Echo), "people": scripted(mcptest.Echo), "medium": risky(2, scripted(mcptest.Echo)), "calm": scripted(mcptest.Echo)}),
		flags:   []string{"--policy", policy},
	})
	d.waitServers(t, 1, "denied", "people", "medium", "calm")
	const headers, json = "Accept: application/json, text/event-stream", "Content-Type: application/json"
	for _, mount := range []string{"", "denied", "people", "medium", "calm"} {
		path := strings.TrimSuffix("/mcp/"+mount, "/")
		a := d.ask(t, "POST", path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers, json)
		session := a.header.Get("Mcp-Session-Id")
		if a.status != http.StatusOK || session == "" {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		for _, server := range []string{"denied", "people", "medium", "calm"} {
			uri := mcptest.ResourceURI
			if mount == "" {
				uri = "callyard:" + server + ":" + uri
			} else if server != mount {
				continue
			}
			for _, method := range []string{"resources/subscribe", "resources/read"} {
				a := d.ask(t, "POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"uri":%q}}`, method, uri), headers, json, "Mcp-Session-Id: "+session)
				refused := strings.Contains(string(a.body), `"error"`)
				if refused != (server != "calm") || refused && !strings.Contains(string(a.body), "forbidden") {
					t.Errorf("%s of %s at %s: %d %s", method, uri, path, a.status, a.body)
				}
			}
		}
	}
}
