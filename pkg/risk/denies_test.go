package risk_test

import (
	"testing"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestDenialsIndependentOfArgumentsAreDetected(t *testing.T) {
	p, err := risk.Parse([]byte(`rules:
  - name: people of ops
    match: {server: files}
    when: '"ops" in principal.groups'
    level: 1
  - name: with a reason
    match: {server: files, tool: delete}
    when: 'has(args.reason)'
    level: 1
  - name: big
    match: {server: files, tool: read}
    when: 'size(args) > 3'
    deny: Too much.
  - name: nothing else of files
    match: {server: files, tool: "d*"}
    deny: No.
  - name: secret
    match: {server: secret}
    deny: No.
`), "policy")
	if err != nil {
		t.Fatal(err)
	}
	if any, byPrincipal := p.Denying(); !any || !byPrincipal {
		t.Errorf("%t %t", any, byPrincipal)
	}
	if any, byPrincipal := risk.Default().Denying(); any || byPrincipal {
		t.Errorf("the default policy: %t %t", any, byPrincipal)
	}
	ops := schema.Principal{Name: "ann", Groups: []string{"ops"}}
	for _, c := range []struct {
		server, tool, method string
		who                  schema.Principal
		denied               bool
	}{
		{"files", "drop", "", schema.Principal{}, true}, {"files", "drop", "", ops, false},
		{"files", "delete", "", schema.Principal{}, false}, // with a reason it runs
		{"files", "read", "", schema.Principal{}, false},   // a small one runs
		{"secret", "any", "", ops, true}, {"secret", "", schema.MethodReadResource, ops, true}, {"secret", "", schema.MethodGetPrompt, ops, true},
		{"files", "", schema.MethodReadResource, schema.Principal{}, false}, {"mail", "send", "", schema.Principal{}, false},
		{"secre\u0442", "any", "", ops, true}, // a lookalike matches, as in Assess
	} {
		in := &risk.Input{Server: c.server, Tool: c.tool, Method: c.method, Principal: c.who, Arguments: []byte("{}")}
		if got := p.Denies(in); got != c.denied {
			t.Errorf("%s/%s %s of %q: denied %t", c.server, c.tool, c.method, c.who.Name, got)
		}
		if p.Denies(in) && !p.Assess(in).Deny {
			t.Errorf("%s/%s is hidden, and a call is not denied", c.server, c.tool)
		}
	}
}
