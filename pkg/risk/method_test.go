package risk

import (
	"strings"
	"testing"
)

func TestServerAndMethodRulesApplyToOtherMethods(t *testing.T) {
	p := mustParse(t, `
rules:
  - {name: prompts, match: {server: bank, method: [prompts/get, completion/complete]}, level: 1}
  - {name: secret, match: {method: resources/read}, when: 'args.uri.startsWith("file:///etc")', deny: not that}
  - {name: guests, when: 'principal.name == "guest"', deny: not you}
  - {name: amounts, match: {server: shop}, when: 'args.amount > 5', deny: too much}
  - {name: tools, match: {server: shop, tool: "pay*"}, deny: no paying}
  - {name: bank, match: {server: bank, tool: "*"}, level: 2}
`)
	for _, c := range []struct {
		server, method, who, args string
		risk                      int
		want                      string
	}{
		{"bank", "tools/call", "", `{}`, 1, "medium caller by bank"},
		{"bank", "", "", `{}`, 1, "medium caller by bank"},
		{"bank", "resources/read", "", `{"uri":"a"}`, 1, "medium caller by bank"},
		{"bank", "prompts/get", "", `{}`, 2, "low by prompts"},
		{"bank", "completion/complete", "", `{}`, 0, "low by prompts"},
		{"shop", "resources/read", "", `{"uri":"file:///etc/passwd"}`, 0, "deny by secret"},
		{"shop", "resources/read", "", `{"uri":"a"}`, 0, "low"},
		{"shop", "resources/read", "", `{"uri":"a"}`, 2, "medium caller"},
		{"shop", "prompts/get", "guest", `{}`, 1, "deny by guests"},
		{"shop", "prompts/get", "", `{"name":"pay"}`, 1, "low"},
	} {
		in := &Input{Method: c.method, Server: c.server, ServerRisk: c.risk, Arguments: []byte(c.args)}
		in.Principal.Name = c.who
		if got := short(p.Assess(in)); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestFaultsOfMethodsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`rules: [{name: a, match: {method: tools/list}, deny: x}]`:               "policies do not apply to the method",
		`rules: [{name: a, match: {tool: t, method: prompts/get}, deny: x}]`:     "only tools/call has a tool",
		`rules: [{name: a, match: {method: []}, deny: x}]`:                       "empty list",
		`rules: [{name: a, match: {method: [resources/read, nope]}, deny: "x"}]`: `"nope"`,
	} {
		if _, err := Parse([]byte(text), "p"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	p := mustParse(t, `
rules:
  - {name: reads, match: {server: s, method: resources/read}, level: 1}
  - {name: all, match: {server: s}, deny: closed}
  - {name: late, match: {server: s, method: prompts/get}, level: 1}
`)
	if found := p.Check(Known{}); len(found) != 1 || !strings.Contains(found[0], "all") {
		t.Errorf("%v", found)
	}
}
