package quota

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

func TestFirstMatchingPrincipalRuleApplies(t *testing.T) {
	rules := principals(&settings.Limits{Principals: []settings.PrincipalRule{
		{Names: []string{"ci-*", "bot?"}, Rate: 10},
		{Groups: []string{"ops"}},
		{Names: []string{"eve"}, Groups: []string{"dev", "qa-*"}, InFlight: 3},
		{Queued: 7},
	}}, 5)
	for _, c := range []struct {
		name, groups string
		want         *limits
	}{
		{"ci-1", "ops", &limits{rate: 10, interval: 1e8, burst: 10, inFlight: 5}},
		{"ci-", "", &limits{rate: 10, interval: 1e8, burst: 10, inFlight: 5}},
		{"botä", "", &limits{rate: 10, interval: 1e8, burst: 10, inFlight: 5}},
		{"bot", "", &limits{queued: 7, inFlight: 5}},
		{"ann", "dev ops", &limits{inFlight: 5}}, // freed from the rules below, not from the default
		{"eve", "qa-1", &limits{inFlight: 3}},
		{"eve", "", &limits{queued: 7, inFlight: 5}},
	} {
		got := matchPrincipal(rules, &schema.Principal{Name: c.name, Groups: strings.Fields(c.groups)})
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(limits{})); diff != "" {
			t.Errorf("%s in %q: %s", c.name, c.groups, diff)
		}
	}
	if l := match(servers(&settings.Limits{Servers: []settings.ServerRule{{Servers: []string{"slow"}, Rate: 0.5}}}), "slow", nil); l == nil || l.interval != 2e9 || l.burst != 1 {
		t.Errorf("%+v", l)
	}
}

func TestEveryFaultOfTheLimitsIsReported(t *testing.T) {
	var all []string
	c := settings.Limits{
		Principals: []settings.PrincipalRule{
			{Names: []string{"a", "", "[x]"}, Groups: []string{" b"}, Rate: -1, Burst: -1, InFlight: -1, Queued: -1, Batches: -1},
			{Burst: 5}, {Rate: 2e6}, {Rate: 0.5, Burst: 3, InFlight: 2, Queued: 10, Batches: 1}, {},
		},
		Servers: []settings.ServerRule{{Servers: []string{"{a}"}, Rate: 1e-9, InFlight: -2}, {Servers: []string{"*"}, Rate: 1}},
	}
	add := func(faults []config.Fault) {
		for _, f := range faults {
			all = append(all, f.Path)
		}
		all = append(all, "|")
	}
	for _, r := range c.Principals {
		add(r.Validate())
	}
	for _, r := range c.Servers {
		add(r.Validate())
	}
	want := "names[1] names[2] groups[0] rate burst in_flight queued batches | burst | rate | | | servers[0] rate in_flight | |"
	if got := strings.Join(all, " "); got != want {
		t.Errorf("%s", got)
	}
}

func FuzzPatternsMatchAsTheyAreDocumented(f *testing.F) {
	for _, seed := range [][2]string{{"ci-*", "ci-1"}, {"a?c", "aäc"}, {"*a*b", "xxaxxbxb"}, {"", ""}, {"**", "a"}, {"?", "\xff"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		re, err := regexp.Compile(`(?s)\A` + quoted + `\z`)
		if err != nil {
			return // not UTF-8
		}
		if got := matchPattern(pattern, name); got != re.MatchString(name) && validUTF8(pattern, name) {
			t.Errorf("%q %q: %v", pattern, name, got)
		}
	})
}

func validUTF8(texts ...string) bool {
	return !strings.ContainsRune(strings.ToValidUTF8(strings.Join(texts, ""), "\uFFFD"), '\uFFFD')
}
