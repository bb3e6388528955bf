package mcp

import (
	"strings"
	"testing"
)

func TestURLElicitationUsesTheFormOfTheRevision(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", canURLs)
	next, question := s.asked(t, `"name":"ask-page"`)
	// The revision 2025-11-25 requires an id, which later revisions do not have.
	params := get(question, "params")
	if id := getString(params, "elicitationId"); !strings.HasPrefix(id, "call_") || !strings.HasSuffix(id, ".p1") {
		t.Errorf("%s", question)
	}
	if getString(params, "mode") != "url" || getString(params, "url") != "https://example.com/a" || getString(params, "message") != "Open it" {
		t.Errorf("%s", question)
	}
	s.send(`{"jsonrpc":"2.0","id":` + string(get(question, "id")) + `,"result":{"action":"accept"}}`)
	if got := next(); !strings.Contains(got, `"inputResponses":{"p1":{"action":"accept"}}`) {
		t.Error(got)
	}
	// Clients of the modern era receive the request verbatim.
	if got := f.callAs(canURLs, "/mcp/demo", "ask-page", `{}`, "").result(t); strings.Contains(got, "elicitationId") {
		t.Error(got)
	}
}
