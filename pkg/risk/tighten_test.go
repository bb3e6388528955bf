package risk_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// somePolicy returns a policy with random rules for the tools a to d.
func somePolicy(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	fmt.Fprintf(&b, "annotations: %s\nrules:\n", pick("trust", "raise", "ignore"))
	for i := range 1 + r.IntN(4) {
		fmt.Fprintf(&b, "  - name: r%d\n    match: {tool: %q}\n", i, pick("a", "b", "c", "*", "a*"))
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "    when: %s\n", pick("args.n > 1", "args.n < 3", "args.missing == 1"))
		}
		switch approval := pick("", "", "caller", "groups", "groups"); {
		case r.IntN(6) == 0:
			b.WriteString("    deny: no\n")
		case approval == "groups":
			fmt.Fprintf(&b, "    approval: {groups: [%s], needed: %d, expires: %s, fresh_login: %t, reason_required: %t}\n", pick("ops", "billing", "ops, billing", "ops, legal"), 1+r.IntN(2), pick("1m", "1h"), r.IntN(2) == 0, r.IntN(2) == 0)
		case approval == "caller":
			fmt.Fprintf(&b, "    approval: {by: caller, expires: %s}\n", pick("1m", "1h"))
		case r.IntN(3) == 0:
			b.WriteString("    sandbox: container\n")
		case r.IntN(3) == 0:
			b.WriteString("    level: 1\n    cache: {ttl: 1m}\n")
		default:
			fmt.Fprintf(&b, "    level: %d\n", 1+r.IntN(3))
		}
		if r.IntN(4) == 0 {
			b.WriteString("    durable: true\n")
		}
	}
	return b.String()
}

// TestTenantPolicyNeverLoosensThePlatforms assesses calls with random pairs of policies.
func TestTenantPolicyNeverLoosensThePlatforms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parsed, tightened := 0, 0
	for range 2500 {
		texts := [2]string{somePolicy(r), somePolicy(r)}
		platform, err := risk.Parse([]byte(texts[0]), "platform")
		own, ownErr := risk.Parse([]byte(texts[1]), "tenant")
		if err != nil || ownErr != nil {
			continue // Parse rejects this combination
		}
		parsed++
		h := risk.NewHolder(platform)
		h.ReplaceAll(platform, map[schema.TenantID]*risk.Policy{"acme": own})
		in := &risk.Input{Server: "s", Tool: string("abcd"[r.IntN(4)]), ServerRisk: r.IntN(4), Arguments: fmt.Appendf(nil, `{"n":%d}`, r.IntN(5)), Principal: schema.Principal{Name: "p", Tenant: "acme"}}
		was, is := platform.Assess(in), h.Assess(in)
		if why := weakerThan(&was, &is); why != "" {
			t.Fatalf("%s:\n%+v\n%+v\nplatform:\n%s\ntenant:\n%s", why, was, is, texts[0], texts[1])
		}
		if was.Deny != is.Deny || was.Level != is.Level || was.Approval == nil && is.Approval != nil {
			tightened++
		}
		// Only the platform's policy applies to principals of other tenants.
		in.Principal.Tenant = "other"
		if alone := h.Assess(in); !reflect.DeepEqual(alone, platform.Assess(in)) {
			t.Fatalf("another tenant is judged differently: %+v", alone)
		}
	}
	if parsed < 1000 || tightened < 200 {
		t.Errorf("only %d pairs were judged, and %d tightened", parsed, tightened)
	}
}

// weakerThan returns how is requires less than was, or "".
func weakerThan(was, is *risk.Assessment) string {
	switch {
	case was.Deny && !is.Deny:
		return "it does not deny"
	case is.Deny:
		return ""
	case is.Level < was.Level:
		return "the level is lower"
	case was.Sandbox != "" && is.Sandbox == "", was.Container && !is.Container:
		return "the sandbox is gone"
	case was.Durable && !is.Durable:
		return "it is not durable"
	case is.Cache != nil && was.Cache == nil:
		return "it is cached"
	case !is.Approval.Requirement().Covers(was.Approval.Requirement()):
		return "the approval is easier to get"
	case was.Approval != nil && is.Approval.Expires > was.Approval.Expires:
		return "it is held for longer"
	}
	return ""
}

func TestTenantPolicyAddsToThePlatforms(t *testing.T) {
	parse := func(text string) *risk.Policy {
		p, err := risk.Parse([]byte(text), "policy")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	platform := parse("rules:\n  - {name: read, match: {tool: read}, level: 1}\n  - {name: pay, match: {tool: pay}, approval: {groups: [ops, board]}}\n")
	own := parse("rules:\n  - {name: no, match: {tool: drop}, deny: not for us}\n  - {name: mine, match: {tool: pay}, approval: {groups: [ops, billing], needed: 2}}\n  - {name: boxed, match: {tool: run}, sandbox: container}\n")
	h := risk.NewHolder(platform)
	before := h.Version()
	h.ReplaceAll(platform, map[schema.TenantID]*risk.Policy{"acme": own})
	if h.Version() == before {
		t.Error("the version does not tell of the tenant's policy")
	}
	judge := func(tool string) risk.Assessment {
		return h.Assess(&risk.Input{Server: "s", Tool: tool, ServerRisk: 1, Principal: schema.Principal{Name: "p", Tenant: "acme"}})
	}
	if a := judge("read"); a.Level != risk.Low || a.Approval != nil || a.Rule != "read" {
		t.Errorf("what no rule of the tenant's concerns: %+v", a)
	}
	if a := judge("drop"); !a.Deny || a.Rule != "no" {
		t.Errorf("a denial: %+v", a)
	}
	if a := judge("pay"); a.Approval == nil || !reflect.DeepEqual(a.Approval.Groups, []string{"ops"}) || a.Approval.Needed != 2 || a.Approval.Expires > time.Hour {
		t.Errorf("both ask for groups: %+v", a.Approval)
	}
	if a := judge("run"); a.Level != risk.High || !a.Container || a.Rule != "boxed" {
		t.Errorf("a sandbox: %+v", a)
	}
}
