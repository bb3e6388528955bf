package risk

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

const readOnly, harmless, destructive = `{"readOnlyHint":true}`, `{"destructiveHint":false}`, `{"destructiveHint":true}`

// short returns an assessment without its reasons and version, for tables.
func short(a Assessment) string {
	var parts []string
	if a.Deny {
		parts = append(parts, "deny")
	} else {
		parts = append(parts, [...]string{"?", "low", "medium", "high"}[a.Level])
	}
	if a.Approval != nil {
		parts = append(parts, a.Approval.By)
	}
	if a.Sandbox != "" {
		parts = append(parts, a.Sandbox)
	}
	if a.Rule != "" {
		parts = append(parts, "by "+a.Rule)
	}
	return strings.Join(parts, " ")
}

func TestDefaultPolicyUsesServerRiskThenHints(t *testing.T) {
	for _, c := range []struct {
		risk        int
		annotations string
		want        string
	}{
		{0, "", "medium caller"},
		{0, `{}`, "medium caller"},
		{0, readOnly, "low"},
		{0, harmless, "low"},
		{0, destructive, "medium caller"},
		{0, `{"readOnlyHint":false}`, "medium caller"},
		{0, `{"readOnlyHint":false,"destructiveHint":false}`, "low"},
		{0, `{"readOnlyHint":true,"destructiveHint":true}`, "low"}, // readOnlyHint overrides destructiveHint
		{1, "", "low"}, {1, destructive, "low"},
		{2, readOnly, "medium caller"},
		{3, readOnly, "high container"},
		{4, readOnly, "high container"}, {-1, readOnly, "high container"},
	} {
		a := Default().Assess(&Input{Server: "s", Tool: "t", ServerRisk: c.risk, Definition: definition(c.annotations)})
		if got := short(a); got != c.want {
			t.Errorf("risk %d, %s: %s, want %s", c.risk, c.annotations, got, c.want)
		}
		if len(a.Reasons) == 0 || a.Version != "default" {
			t.Errorf("risk %d, %s: %+v", c.risk, c.annotations, a)
		}
	}
	if got := short(Default().Assess(nil)); got != "medium caller" {
		t.Errorf("nothing at all: %s", got)
	}
}

func TestHintsModeDecidesHowHintsCount(t *testing.T) {
	for _, c := range []struct {
		mode        string
		trusted     bool
		risk        int
		annotations string
		want        string
	}{
		{"trust", false, 0, readOnly, "low"},
		{"trust", false, 1, destructive, "low"},
		{"raise", false, 0, readOnly, "medium caller"},
		{"raise", false, 0, harmless, "medium caller"},
		{"raise", true, 0, readOnly, "low"},
		{"raise", true, 0, harmless, "low"},
		{"raise", true, 0, "", "medium caller"},
		{"raise", false, 1, "", "low"},
		{"raise", false, 1, destructive, "medium caller"},
		{"raise", true, 1, destructive, "medium caller"},
		{"raise", false, 3, destructive, "high container"},
		{"ignore", true, 0, readOnly, "medium caller"},
		{"ignore", false, 1, destructive, "low"},
	} {
		p := mustParse(t, "annotations: "+c.mode)
		a := p.Assess(&Input{Server: "s", Tool: "t", ServerRisk: c.risk, TrustAnnotations: c.trusted, Definition: definition(c.annotations)})
		if got := short(a); got != c.want {
			t.Errorf("%s, trusted %v, risk %d, %s: %s, want %s", c.mode, c.trusted, c.risk, c.annotations, got, c.want)
		}
	}
}

const office = `
annotations: trust
approval:
  default: {by: groups, groups: [ops], needed: 1, expires: 30m}
rules:
  - name: no-drop
    match: {server: "db*", tool: "drop_*"}
    deny: tables are dropped by migrations only
  - name: big-payment
    match: {server: [bank, bank-eu], tool: pay}
    when: args.amount > 1000
    level: 2
    approval: {groups: [finance, board], needed: 2, expires: 1h, escalate_to: board, reason_required: true, fresh_login: true, slack_level: 2}
  - name: small-payment
    match: {server: [bank, bank-eu], tool: pay}
    level: 1
    reason: the limit is set with the bank
  - name: admins
    when: '"admin" in principal.groups'
    level: 1
  - name: shell
    match: {tool: ["exec*", "run_?"]}
    sandbox: container
  - name: shell-asks
    match: {server: guarded}
    approval: default
  - name: recorded
    match: {server: files}
    durable: true
  - name: contained-and-held
    match: {server: lab}
    level: 3
    approval: {by: caller}
`

func TestTheFirstRuleThatMatchesWins(t *testing.T) {
	p := mustParse(t, office)
	for _, c := range []struct {
		server, tool, arguments, group string
		risk                           int
		annotations                    string
		want                           string
	}{
		{"db1", "drop_table", `{}`, "admin", 1, readOnly, "deny by no-drop"},
		{"db1", "drop_table/x", `{}`, "", 1, "", "deny by no-drop"},
		{"xdb", "drop_table", `{}`, "", 1, "", "low"},
		{"bank", "pay", `{"amount":1001}`, "", 1, "", "medium groups by big-payment"},
		{"bank-eu", "pay", `{"amount":1000}`, "", 3, "", "low by small-payment"},
		{"db1", "select", `{}`, "admin", 2, "", "low by admins"},
		{"s", "exec", `{}`, "", 1, "", "high container by shell"},
		{"s", "run_1", `{}`, "", 2, "", "high groups container by shell"},
		{"s", "run_12", `{}`, "", 1, "", "low"},
		{"guarded", "t", `{}`, "", 1, "", "medium groups by shell-asks"},
		{"guarded", "t", `{}`, "", 3, "", "high groups container by shell-asks"},
		{"files", "t", `{}`, "", 1, "", "low by recorded"},
		{"files", "t", `{}`, "", 0, "", "medium groups by recorded"},
		{"lab", "t", `{}`, "", 0, "", "high caller container by contained-and-held"},
		{"other", "t", `{}`, "", 0, "", "medium groups"},
		{"other", "t", `{}`, "", 0, readOnly, "low"},
	} {
		in := &Input{Server: c.server, Tool: c.tool, Arguments: []byte(c.arguments), ServerRisk: c.risk, Definition: definition(c.annotations)}
		if c.group != "" {
			in.Principal.Groups = []string{"x", c.group}
		}
		a := p.Assess(in)
		if got := short(a); got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.server, c.tool, c.arguments, got, c.want)
		}
		if a.Durable != (c.server == "files") || a.Version != p.Version() || !strings.HasPrefix(a.Version, "sha256:") {
			t.Errorf("%s %s: %+v", c.server, c.tool, a)
		}
	}
}

func TestApprovalHasAllSettingsOfTheRule(t *testing.T) {
	p := mustParse(t, office)
	a := p.Assess(&Input{Server: "bank", Tool: "pay", Arguments: []byte(`{"amount":5000}`)})
	want := Assessment{
		Level: Medium, Rule: "big-payment", Version: p.Version(),
		Reasons: []string{`Rule "big-payment" holds this call: it requires approval.`},
		Approval: &Approval{By: ByGroups, Groups: []string{"finance", "board"}, Needed: 2, Expires: time.Hour,
			EscalateTo: []string{"board"}, Reasons: true, FreshLogin: true, SlackLevel: 2},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	a = p.Assess(&Input{Server: "bank", Tool: "pay", Arguments: []byte(`{"amount":1}`)})
	if diff := cmp.Diff([]string{`Rule "small-payment" allows this call to run at once.`, "the limit is set with the bank."}, a.Reasons); diff != "" {
		t.Error(diff)
	}
	a = p.Assess(&Input{Server: "db", Tool: "drop_all"})
	if diff := cmp.Diff([]string{`Rule "no-drop" denies this call: tables are dropped by migrations only.`}, a.Reasons); diff != "" {
		t.Error(diff)
	}
}

func TestAConditionThatFailsNeverLowersTheRisk(t *testing.T) {
	outcomes := map[string]int{ // the strictness of each outcome
		"low": 0, "medium caller": 1, "medium groups": 2, "high container": 1, "high caller container": 2, "high groups container": 3, "deny": 4,
	}
	rules := map[string]string{
		"allow": "level: 1", "hold": "level: 2", "ask": "approval: {groups: [a]}", "contain": "level: 3", "add": "sandbox: container", "deny": "deny: no", "keep": "durable: true", "cache": "cache: {ttl: 1m}",
	}
	strictness := func(a Assessment) int {
		text, _, _ := strings.Cut(short(a), " by ")
		n, ok := outcomes[strings.TrimSuffix(text, " by")]
		if !ok {
			t.Fatalf("no strictness for %q", text)
		}
		return n
	}
	for first, one := range rules {
		for second, two := range rules {
			for level := range 4 {
				in := &Input{Server: "s", Tool: "t", ServerRisk: level, Arguments: []byte(`{}`)}
				judge := func(when string) Assessment {
					return mustParse(t, "rules:\n  - {name: first, when: '"+when+"', "+one+"}\n  - {name: second, "+two+"}\n").Assess(in)
				}
				failed := judge("args.gone == 1")
				for _, when := range []string{"true", "false"} {
					if other := judge(when); strictness(failed) < strictness(other) || failed.Level < other.Level && !failed.Deny {
						t.Errorf("%s then %s, risk %d: failing gives %q, %s gives %q", first, second, level, short(failed), when, short(other))
					}
				}
				if !failed.Deny && failed.Approval == nil {
					t.Errorf("%s then %s, risk %d: not held: %q", first, second, level, short(failed))
				}
				if text := strings.Join(failed.Reasons, " "); failed.Rule == "first" && !strings.Contains(text, "could not be evaluated") {
					t.Errorf("%s then %s: %s", first, second, text)
				}
			}
		}
	}
}

func TestStricterApprovalCombinesBoth(t *testing.T) {
	caller := &Approval{By: ByCaller, Needed: 1, Expires: time.Minute}
	ops := &Approval{By: ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: time.Hour, FreshLogin: true, SlackLevel: 3}
	board := &Approval{By: ByGroups, Groups: []string{"board"}, Needed: 2, Expires: 2 * time.Hour, Reasons: true, SlackLevel: 1}
	for _, c := range []struct{ a, b, want *Approval }{
		{nil, nil, nil}, {caller, nil, caller}, {nil, ops, ops},
		{caller, ops, &Approval{By: ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: time.Minute, FreshLogin: true, SlackLevel: 3}},
		{board, ops, &Approval{By: ByGroups, Groups: []string{"board"}, Needed: 2, Expires: time.Hour, FreshLogin: true, Reasons: true, SlackLevel: 1}},
	} {
		if diff := cmp.Diff(c.want, stricter(c.a, c.b)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(c.want, stricter(c.b, c.a)); diff != "" {
			t.Error("the other way round: ", diff)
		}
	}
}

func TestOnlyCallsThatCertainlyRunAtOnceAreCached(t *testing.T) {
	p := mustParse(t, `
rules:
  - {name: own, match: {tool: "read_*"}, cache: {ttl: 90s}}
  - {name: all, match: {tool: list}, level: 1, cache: {ttl: 1h, scope: shared}}
  - {name: asked, match: {tool: big}, when: args.n > 1, level: 2}
  - {name: some, match: {tool: big}, cache: {ttl: 1m, scope: principal}}
  - {name: plain, match: {tool: plain}, level: 1}
`)
	for _, c := range []struct {
		tool, arguments string
		risk            int
		want            *Cache
	}{
		{"read_file", `{}`, 1, &Cache{TTL: 90 * time.Second}},
		{"read_file", `{}`, 2, nil}, // held
		{"read_file", `{}`, 3, nil}, // in a container
		{"list", `{}`, 3, &Cache{TTL: time.Hour, Shared: true}},
		{"big", `{"n":1}`, 1, &Cache{TTL: time.Minute}},
		{"big", `{"n":2}`, 1, nil},
		{"big", `{}`, 1, nil}, // it is unknown whether it must be held
		{"plain", `{}`, 1, nil},
		{"other", `{}`, 1, nil},
		{"Read_file", `{}`, 1, nil},
	} {
		a := p.Assess(&Input{Server: "s", Tool: c.tool, Arguments: []byte(c.arguments), ServerRisk: c.risk})
		if diff := cmp.Diff(c.want, a.Cache); diff != "" {
			t.Errorf("%s %s at risk %d: %s", c.tool, c.arguments, c.risk, diff)
		}
	}
	if a := Default().Assess(&Input{Server: "s", Tool: "t", ServerRisk: 1}); a.Cache != nil {
		t.Error("without a policy results are kept")
	}
	if reasons := p.Assess(&Input{Server: "s", Tool: "read_file", ServerRisk: 1}).Reasons; reasons[0] != `Rule "own" caches results of this call.` {
		t.Error(reasons)
	}
}

func TestAssessIsSafeForConcurrentUse(t *testing.T) {
	p := mustParse(t, office)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if got := short(p.Assess(&Input{Server: "bank", Tool: "pay", Arguments: []byte(`{"amount":2000}`)})); got != "medium groups by big-payment" {
					t.Error(got)
					return
				}
				if got := short(p.Assess(&Input{Server: "bank", Tool: "pay", Arguments: []byte(`{}`)})); got != "medium groups by big-payment" {
					t.Error(got)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkAssess(b *testing.B) {
	p := mustParse(b, office)
	pay := &Input{Server: "bank", Tool: "pay", Arguments: []byte(`{"amount":5000,"to":"somebody","note":"a text of some length"}`), Principal: schema.Principal{Name: "ci"}}
	globs := mustParse(b, "rules:\n"+strings.Repeat("  - {match: {server: 'db*', tool: [drop_table, 'delete_*']}, deny: no}\n", 10))
	plain := &Input{Server: "files", Tool: "read_file", Definition: definition(readOnly), Arguments: pay.Arguments}
	for _, c := range []struct {
		name   string
		policy *Policy
		in     *Input
	}{
		{"default-hints", Default(), plain},
		{"default-no-hints", Default(), &Input{Server: "files", Tool: "read_file", Definition: definition("")}},
		{"ten-rules-no-match", globs, plain},
		{"condition", p, pay},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.policy.Assess(c.in)
			}
		})
	}
}

func TestOnlyExplicitContainerRulesOutWeakerSandboxes(t *testing.T) {
	for source, want := range map[string]bool{
		"rules:\n  - {name: r, match: {tool: t}, sandbox: container}\n":           true,
		"rules:\n  - {name: r, match: {tool: t}, level: 3, sandbox: container}\n": true,
		"rules:\n  - {name: r, match: {tool: t}, level: 3}\n":                     false,
		"rules: []\n": false,
	} {
		a := mustParse(t, source).Assess(&Input{Server: "s", Tool: "t", ServerRisk: 3})
		if a.Container != want || a.Sandbox != SandboxContainer {
			t.Errorf("%s: %+v", source, a)
		}
	}
}

func TestReasonsAreJoinedBySentences(t *testing.T) {
	for _, c := range []struct {
		want    string
		reasons []string
	}{
		{"", nil},
		{"riskLevel 2", []string{"riskLevel 2"}},
		{"Rule \"a\" holds this call until it is approved. It writes.", []string{"Rule \"a\" holds this call until it is approved.", "It writes."}},
		{"riskLevel 2; the server has no hints", []string{"riskLevel 2", "the server has no hints"}},
	} {
		if got := JoinReasons(c.reasons); got != c.want {
			t.Errorf("%q is joined to %q, want %q", c.reasons, got, c.want)
		}
	}
}
