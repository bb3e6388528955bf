package risk

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// Known holds the facts that a policy is checked against. A nil field is unknown, and the
// checks that need it are skipped.
type Known struct {
	// Groups maps each group to its members.
	Groups map[string][]string
	// Servers lists all servers.
	Servers []string
	// Tools maps each server to its tools. A server without an entry has not listed its
	// tools yet.
	Tools map[string][]string
}

// Doubt is a likely mistake in a well-formed policy.
type Doubt struct {
	// Fault holds the position in the file. Line 0 means the whole file.
	Fault
	// Expires means that no person could approve, so that a call that requires this
	// approval can only expire.
	Expires bool
}

// Check returns the results of [Policy.Doubts] as sentences.
func (p *Policy) Check(known Known) []string {
	var found []string
	for _, d := range p.Doubts(known) {
		where := d.Path
		if d.Line > 0 && where != "approval.default" {
			where += fmt.Sprintf(" (line %d)", d.Line)
		}
		found = append(found, where+": "+d.Message)
	}
	return found
}

// Doubts returns likely mistakes in a well-formed policy, in the order of the file: a group
// without members, an unknown server or tool, a rule that can never apply.
func (p *Policy) Doubts(known Known) []Doubt {
	var found []Doubt
	add := func(r *rule, expires bool, format string, args ...any) {
		where, at := "approval.default", p.approvalAt
		if r != nil {
			where, at = "rule "+quote(r.name), r.at
		}
		found = append(found, Doubt{Fault{Line: at.Line, Column: at.Column, Path: where, Message: fmt.Sprintf(format, args...)}, expires})
	}
	say := func(r *rule, format string, args ...any) { add(r, false, format, args...) }
	approvers := func(r *rule, a *Approval) {
		if a == nil || known.Groups == nil || r != nil && a == p.approval {
			return
		}
		people := map[string]bool{}
		for _, g := range slices.Concat(a.Groups, a.EscalateTo) {
			if len(known.Groups[g]) == 0 {
				add(r, true, "the group %s has no members, so nobody can approve; add members or use another group.", quote(g))
			}
			for _, member := range known.Groups[g] {
				people[member] = true
			}
		}
		if len(people) > 0 && len(people) < a.Needed {
			add(r, true, "%d approvals are needed, but its groups have only %d members; lower needed or add members.", a.Needed, len(people))
		}
	}
	approvers(nil, p.approval)
	for i := range p.rules {
		r := &p.rules[i]
		approvers(r, r.approval)
		if why := p.neverWins(i); why != "" {
			say(r, "it can never apply: %s", why)
			continue
		}
		for _, why := range r.unknownNames(known) {
			say(r, "%s", why)
		}
	}
	return found
}

// neverWins returns the reason why rule i can never apply, or "".
func (p *Policy) neverWins(i int) string {
	r := &p.rules[i]
	if r.when != nil && r.when.constant == no {
		return "its condition is false for every call; correct it or remove the rule."
	}
	for j := range p.rules[:i] {
		earlier := &p.rules[j]
		always := earlier.when == nil || earlier.when.constant == ok
		if always && earlier.concernsAll(r) && covers(earlier.servers, r.servers) && covers(earlier.tools, r.tools) {
			return fmt.Sprintf("rule %s in line %d already matches all of its calls; move it above that rule or remove it.", quote(earlier.name), earlier.at.Line)
		}
	}
	return ""
}

// covers reports whether every name that a pattern of b matches is certainly matched by a
// pattern of a.
func covers(a, b []glob) bool {
	if len(a) == 0 {
		return true
	}
	if len(b) == 0 {
		b = []glob{newGlob("*")}
	}
	for _, inner := range b {
		if !slices.ContainsFunc(a, func(outer glob) bool {
			// Only a star of the outer pattern can match a star of the inner one.
			return outer.any || matchWildcard(outer.text, inner.text, func(p, n rune) bool { return p == n && n != '*' && n != '?' }) && !mayExceed(outer.text, inner.text)
		}) {
			return false
		}
	}
	return true
}

// mayExceed reports whether a "?" of the outer pattern could be the only match for a "*" of the
// inner one.
func mayExceed(outer, inner string) bool {
	return strings.Contains(outer, "?") && strings.Contains(inner, "*")
}

// unknownNames returns a message for each server or tool that the rule names and that does not
// exist.
func (r *rule) unknownNames(known Known) (found []string) {
	if known.Servers == nil {
		return nil
	}
	var mine []string
	for _, s := range known.Servers {
		if matchesAny(r.servers, s) {
			mine = append(mine, s)
		}
	}
	for i := range r.servers {
		g := &r.servers[i]
		if !slices.ContainsFunc(known.Servers, g.matches) {
			found = append(found, fmt.Sprintf("%s matches no server; %s", quote(g.text), hintAt(g.text, known.Servers)))
		}
	}
	tools := map[string]bool{}
	for _, s := range mine {
		listed, ok := known.Tools[s]
		if !ok {
			return found
		}
		for _, t := range listed {
			tools[t] = true
		}
	}
	if len(mine) == 0 {
		return found
	}
	names := slices.Sorted(maps.Keys(tools))
	for i := range r.tools {
		g := &r.tools[i]
		if !g.any && !slices.ContainsFunc(names, g.matches) {
			fix := "correct the name."
			if near := yamldoc.Nearest(g.text, names); near != "" {
				fix = "did you mean " + quote(near) + "?"
			}
			found = append(found, fmt.Sprintf("%s matches no tool of its servers; %s", quote(g.text), fix))
		}
	}
	return found
}
