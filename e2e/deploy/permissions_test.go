package deploy_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
)

const permissionsPage = "../docs/reference/nats-permissions.md"

func TestPermissionFilesMatchTheBus(t *testing.T) {
	generated(t, "nats/permissions.conf", permissions(bus.Roles()...))
	// nats-server reports an included but unused section as a mistake.
	generated(t, "nats/permissions-region.conf", permissions(bus.RegionRole()))
	generated(t, permissionsPage, page(append(bus.Roles(), bus.RegionRole())...))
}

// permissions formats the roles for nats-server.
func permissions(roles ...bus.Role) string {
	var b strings.Builder
	b.WriteString("# The permissions of each role, generated from pkg/bus/roles.go by go -C e2e test ./deploy -update.\n# Everything else is denied.\n")
	list := func(what string, subjects []string) {
		fmt.Fprintf(&b, "  %s: { allow: [\n", what)
		for _, s := range subjects {
			fmt.Fprintf(&b, "    %q\n", s)
		}
		b.WriteString("  ] }\n")
	}
	for _, r := range roles {
		fmt.Fprintf(&b, "\n%s: {\n", strings.ToUpper(r.Name))
		list("publish", r.Publish)
		list("subscribe", r.Subscribe)
		b.WriteString("}\n")
	}
	return b.String()
}

// page formats the reference of the roles.
func page(roles ...bus.Role) string {
	var b strings.Builder
	b.WriteString(`# Permissions at NATS

The permissions of each user in ` + "`deploy/nats/accounts.conf`" + `. Everything that is not listed here is denied.
This page and ` + "`deploy/nats/permissions.conf`" + ` are generated from ` + "`pkg/bus/roles.go`" + ` with ` + "`go -C e2e test ./deploy -update`" + `.
A test signs in as each user and tries every request of JetStream and every subject of every role: only what is listed here succeeds.

No role may create, change or delete a stream: ` + "`callyard init`" + ` creates them, as the user ` + "`operator`" + `. No role may publish on the reply subject
of a message because it was sent that message (` + "`allow_responses`" + `). What these permissions cannot prevent: [deployment](../how-to/deployment.md#nats-a-user-for-each-role).

In the tables, *reads* is ` + "`last`" + ` (the last message of a subject, from the leader), ` + "`direct`" + ` (the same, from any replica) or ` + "`range`" + ` (all messages in order).
*Follows* is the only filter that a consumer may have. *Removes* allows a stream to be purged of records that are no longer needed.
`)
	for _, r := range roles {
		fmt.Fprintf(&b, "\n## %s\n", r.Name)
		if len(r.Stores) > 0 {
			b.WriteString("\n| stream | writes | reads | follows | removes |\n|---|---|---|---|---|\n")
			for _, s := range r.Stores {
				var reads []string
				for name, has := range map[string]bool{"last": s.Last, "direct": s.Direct, "range": s.Range} {
					if has {
						reads = append(reads, name)
					}
				}
				slices.Sort(reads)
				removes := ""
				if s.Purge {
					removes = "yes"
				}
				follows := ""
				if s.Follows != "" {
					follows = "`" + s.Follows + "`"
				}
				writes := ""
				if len(s.Writes) > 0 {
					writes = "`" + strings.Join(s.Writes, "`, `") + "`"
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Stream, writes, strings.Join(reads, ", "), follows, removes)
			}
		}
		for _, l := range []struct {
			what     string
			subjects []string
		}{{"publish on", r.Publish}, {"subscribe to", r.Subscribe}} {
			fmt.Fprintf(&b, "\n`%s` may %s\n\n```text\n%s\n```\n", r.Name, l.what, strings.Join(l.subjects, "\n"))
		}
	}
	return b.String()
}

// allowed holds the permissions of a role on the page.
type allowed struct{ publish, subscribe []string }

var listOfPage = regexp.MustCompile("(?m)^`([a-z]+)` may (publish on|subscribe to)\n\n```text\n([^`]*)\n```$")

func listed(t testing.TB) map[string]allowed {
	t.Helper()
	roles := map[string]allowed{}
	for _, m := range listOfPage.FindAllStringSubmatch(read(t, permissionsPage), -1) {
		r, subjects := roles[m[1]], strings.Split(m[3], "\n")
		if m[2] == "publish on" {
			r.publish = subjects
		} else {
			r.subscribe = subjects
		}
		roles[m[1]] = r
	}
	for _, role := range []string{"frontdoor", "approver", "worker", "region"} {
		if len(roles[role].publish) == 0 || len(roles[role].subscribe) == 0 {
			t.Fatalf("the page lists nothing for %s", role)
		}
	}
	return roles
}

// covers reports whether pattern matches every subject that the other one matches.
func covers(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return i < len(s)
		case i == len(s), s[i] == ">":
			return false
		case token != "*" && token != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}

func TestSubjectMatchesItsPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"a.*", "a.b", true}, {"a.*", "a.*", true}, {"a.>", "a.b.>", true}, {"a.>", "a.*.c", true}, {"a.b", "a.b", true},
		{"a.*", "a.>", false}, {"a.b", "a.*", false}, {"a.*", "a", false}, {"a.>", "a", false}, {"a", "a.b", false}, {"a.*.c", "a.b.d", false},
	} {
		if got := covers(c.pattern, c.subject); got != c.want {
			t.Errorf("%s covers %s: %t, want %t", c.pattern, c.subject, got, c.want)
		}
	}
}

func unique(all []string) []string {
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
