package mcp

import (
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

func TestUnknownVersionErrorListsSupportedVersions(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{}`)
	const plain = `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	for name, c := range map[string]struct {
		body, version, session string
		supported              []string
	}{
		"a newer one in a session":         {plain, "2099-01-01", s.id, mcpwire.Legacy()},
		"text in a session":                {plain, "latest", s.id, mcpwire.Legacy()},
		"an older one in a session":        {plain, "2023-01-01", s.id, mcpwire.Legacy()},
		"an older one without a session":   {plain, "2023-01-01", "", mcpwire.Legacy()},
		"a newer one without a session":    {plain, "2099-01-01", "", []string{mcpwire.Modern}},
		"a newer one, also in _meta":       {strings.ReplaceAll(modernBody("tools/list", "", `{}`, ""), mcpwire.Modern, "2099-01-01"), "2099-01-01", "", []string{mcpwire.Modern}},
		"a newer one with a notification":  {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "2099-01-01", s.id, mcpwire.Legacy()},
		"an older one with a notification": {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "2023-01-01", s.id, mcpwire.Legacy()},
	} {
		a := f.send(f.request("POST", "/mcp/demo", c.body, "Mcp-Protocol-Version", c.version, mcpwire.HeaderSessionID, c.session))
		e := a.fault(t)
		if a.status != 400 || e.Code != mcpwire.CodeUnsupportedVersion || getString(e.Data, "requested") != c.version || !strings.Contains(e.Message, c.version) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if got := string(get(e.Data, "supported")); got != `["`+strings.Join(c.supported, `","`)+`"]` {
			t.Errorf("%s: supported %s", name, got)
		}
		if !slices.ContainsFunc(c.supported, func(v string) bool { return strings.Contains(e.Message, v) }) {
			t.Errorf("%s: %s", name, e.Message)
		}
	}
	// The session is unchanged.
	s.send(plain).result(t)
}

func TestAVersionThatNeedsASessionIsRefusedWithThatReason(t *testing.T) {
	f := openFabric(t, nil)
	body := strings.ReplaceAll(modernBody("tools/list", "", `{}`, ""), mcpwire.Modern, "2025-11-25")
	e := f.send(f.request("POST", "/mcp/demo", body, "Mcp-Protocol-Version", "2025-11-25")).fault(t)
	if e.Code != mcpwire.CodeUnsupportedVersion || strings.Contains(e.Message, "not supported") || !strings.Contains(e.Message, "needs a session") {
		t.Errorf("%+v", e)
	}
}
