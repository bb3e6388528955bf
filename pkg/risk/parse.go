package risk

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxSource = 1 << 20
	maxDepth  = 64
	maxRules  = 1000
	maxName   = 256
	maxReason = 1000
)

// Parse parses the source of a policy. name identifies the source in faults, such as the path
// of the file. The error is *[Faults] and holds all faults.
func Parse(source []byte, name string) (*Policy, error) {
	p := Default()
	p.version, p.source = schema.Digest(source), bytes.Clone(source)
	r := policyReader{policy: p, names: map[string]yamldoc.Position{}}
	if root := parseYAML(source, &r.faults); root != nil && root.Kind != yamldoc.Null {
		r.members("", root,
			key{"annotations", func(path string, n *yamldoc.Node) {
				p.annotations = cmp.Or(annotationMode(r.choice(path, n, string(trustHints), string(raiseHints), string(ignoreHints))), trustHints)
			}},
			key{"approval", func(path string, n *yamldoc.Node) {
				r.members(path, n, key{"default", func(path string, n *yamldoc.Node) {
					if a := r.approval(path, n); a != nil {
						p.approval, p.approvalAt = a, n.At
					}
				}})
			}},
			key{"rules", r.rules},
		)
	}
	if err := r.faults.err(name); err != nil {
		return nil, err
	}
	// The default can follow the rules in the file, so it is applied last.
	for i := range p.rules {
		if p.rules[i].approval == useDefault {
			p.rules[i].approval = p.approval
		}
	}
	return p, nil
}

// parseYAML parses a source. It returns nil if the source cannot be read at all, and
// [yamldoc.Null] for an empty source.
func parseYAML(source []byte, faults *report) *yamldoc.Node {
	switch {
	case len(source) > maxSource:
		faults.add(yamldoc.Position{}, "", "the file is larger than 1 MiB; it is probably not the intended file.")
		return nil
	case !utf8.Valid(source):
		faults.add(yamldoc.Position{}, "", "the file is not UTF-8 text; save it as UTF-8.")
		return nil
	}
	root, ok := yamldoc.Parse(bytes.TrimPrefix(source, []byte("\ufeff")), yamldoc.Options{
		MaxDepth: maxDepth,
		Report:   func(at yamldoc.Position, format string, args ...any) { faults.add(at, "", format, args...) },
	})
	if ok && root == nil {
		return &yamldoc.Node{Kind: yamldoc.Null, At: yamldoc.Position{Line: 1, Column: 1}}
	}
	return root
}

// useDefault marks `approval: default` until the whole file has been read.
var useDefault = new(Approval{})

type policyReader struct {
	reader
	policy *Policy
	env    *cel.Env
	names  map[string]yamldoc.Position
}

func (r *policyReader) rules(path string, n *yamldoc.Node) {
	if n.Kind == yamldoc.Null || !r.is(path, n, yamldoc.List, "a list of rules") {
		return
	}
	if len(n.Items) > maxRules {
		r.faults.add(n.At, path, "has more than %d rules; combine some with lists and globs.", maxRules)
		return
	}
	for i, item := range n.Items {
		r.rule(fmt.Sprintf("%s[%d]", path, i), item)
	}
}

func (r *policyReader) rule(path string, n *yamldoc.Node) {
	before := len(r.faults.list)
	p := rule{at: n.At}
	var denial, reason, condition string
	r.members(path, n,
		key{"name", func(path string, n *yamldoc.Node) { p.name = r.text(path, n, maxName) }},
		key{"match", func(path string, n *yamldoc.Node) {
			r.members(path, n,
				key{"server", func(path string, n *yamldoc.Node) { p.servers = r.globs(path, n) }},
				key{"tool", func(path string, n *yamldoc.Node) { p.tools = r.globs(path, n) }},
				key{"method", func(path string, n *yamldoc.Node) { p.methods = r.methods(path, n) }})
		}},
		key{"when", func(path string, n *yamldoc.Node) { p.when, condition = r.condition(path, n), n.Text }},
		key{"deny", func(path string, n *yamldoc.Node) { denial, p.deny = r.text(path, n, maxReason), true }},
		key{"level", func(path string, n *yamldoc.Node) { p.level = r.number(path, n, Low, High) }},
		key{"approval", func(path string, n *yamldoc.Node) { p.approval = r.approval(path, n) }},
		key{"sandbox", func(path string, n *yamldoc.Node) { p.sandbox = r.choice(path, n, SandboxContainer) }},
		key{"durable", func(path string, n *yamldoc.Node) { p.durable = r.bool(path, n) }},
		key{"cache", func(path string, n *yamldoc.Node) { p.cache = r.cache(path, n) }},
		key{"reason", func(path string, n *yamldoc.Node) { reason = r.text(path, n, maxReason) }},
	)
	p.name = cmp.Or(p.name, path)
	if first, twice := r.names[p.name]; twice {
		r.faults.add(n.At, path, "the name %s is already used in line %d; use unique names.", quote(p.name), first.Line)
	}
	r.names[p.name] = n.At
	if len(r.faults.list) == before { // otherwise a key that seems absent may be one with a fault
		r.outcome(path, n, &p, reason)
	}
	p.looksAtArgs, p.looksAtCaller = strings.Contains(condition, "args"), strings.Contains(condition, "principal")
	p.general = !p.looksAtArgs && (len(p.tools) == 0 || slices.ContainsFunc(p.tools, func(g glob) bool { return g.any }))
	p.explain(denial, reason)
	r.policy.rules = append(r.policy.rules, p)
}

// outcome reports contradictory outcomes.
func (r *policyReader) outcome(path string, n *yamldoc.Node, p *rule, reason string) {
	others := p.level != 0 || p.approval != nil || p.sandbox != ""
	switch {
	case len(p.tools) > 0 && len(p.methods) > 0 && !slices.Contains(p.methods, schema.MethodCallTool):
		r.faults.add(n.At, path, "only %s has a tool; remove match.tool, or add that method.", schema.MethodCallTool)
	case p.deny && (others || p.cache != nil):
		r.faults.add(n.At, path, "a denied call never runs; remove level, approval, sandbox and cache, or remove deny.")
	case p.cache != nil && (p.level > Low || p.approval != nil || p.sandbox != ""):
		r.faults.add(n.At, path, "only a call that runs at once can be answered from the cache; remove cache, or remove approval, sandbox and a level above 1.")
	case p.cache != nil && p.durable:
		r.faults.add(n.At, path, "a durable call is never answered from the cache; remove cache, or remove durable.")
	case p.deny && reason != "":
		r.faults.add(n.At, path, "deny already contains the reason; remove the key reason.")
	case !p.deny && !others && !p.durable && p.cache == nil:
		r.faults.add(n.At, path, "the rule has no outcome; add deny, level, approval, sandbox, durable or cache.")
	case p.level == Low && p.approval != nil:
		r.faults.add(n.At, path, "level 1 runs at once and cannot wait for an approval; write level 2, or remove approval.")
	case p.level == Low && p.sandbox != "":
		r.faults.add(n.At, path, "level 1 runs without a container; write level 3, or remove sandbox.")
	}
}

// methods reads names of MCP methods.
func (r *policyReader) methods(path string, n *yamldoc.Node) (list []string) {
	for _, text := range r.texts(path, n) {
		if !slices.Contains(methods, text) {
			r.faults.add(n.At, path, "policies do not apply to the method %s; %s", quote(text), hintAt(text, methods))
			continue
		}
		list = append(list, text)
	}
	return list
}

// globs reads patterns of names.
func (r *policyReader) globs(path string, n *yamldoc.Node) (globs []glob) {
	for _, text := range r.texts(path, n) {
		switch {
		case strings.ContainsAny(text, `[]{}\`):
			r.faults.add(n.At, path, "%s: a pattern can use * for any characters and ? for one; for alternatives write a list of patterns.", quote(text))
		case strings.TrimSpace(text) != text:
			r.faults.add(n.At, path, "%s begins or ends with a space; remove it.", quote(text))
		default:
			globs = append(globs, newGlob(text))
		}
	}
	return globs
}

func (r *policyReader) condition(path string, n *yamldoc.Node) *condition {
	source := r.text(path, n, maxCondition)
	if source == "" {
		return nil
	}
	if r.env == nil {
		env, err := newEnv()
		if err != nil {
			r.faults.add(n.At, path, "conditions cannot be compiled by this build: %v.", err)
			return nil
		}
		r.env = env
	}
	c, issues := compile(r.env, source)
	for _, i := range issues {
		where, tail := n.At, ""
		switch {
		case i.line == 1 && n.Indent >= 0:
			where.Column += n.Indent + i.column - 1
		case i.line > 0:
			tail = fmt.Sprintf(" (line %d, column %d of the condition)", i.line, i.column)
		}
		r.faults.add(where, path, "%s%s", i.message, tail)
	}
	return c
}

const (
	leastExpires = time.Second
	mostExpires  = 30 * day
	mostNeeded   = 20
)

// approval reads an approval rule: a map, or the word default.
func (r *policyReader) approval(path string, n *yamldoc.Node) *Approval {
	if n.Kind == yamldoc.Text && n.Text == "default" && path != "approval.default" {
		return useDefault
	}
	if !r.is(path, n, yamldoc.Map, "a map of keys or default") {
		return nil
	}
	before := len(r.faults.list)
	a := defaultApproval()
	a.By = ""
	given := map[string]yamldoc.Position{}
	note := func(name string, read func(path string, n *yamldoc.Node)) key {
		return key{name, func(path string, n *yamldoc.Node) { given[name] = n.At; read(path, n) }}
	}
	r.members(path, n,
		note("by", func(path string, n *yamldoc.Node) { a.By = r.choice(path, n, ByCaller, ByGroups) }),
		note("groups", func(path string, n *yamldoc.Node) { a.Groups = r.texts(path, n) }),
		note("needed", func(path string, n *yamldoc.Node) { a.Needed = r.number(path, n, 1, mostNeeded) }),
		note("expires", func(path string, n *yamldoc.Node) { a.Expires = r.duration(path, n, leastExpires, mostExpires) }),
		note("escalate_to", func(path string, n *yamldoc.Node) { a.EscalateTo = r.texts(path, n) }),
		note("escalate_after", func(path string, n *yamldoc.Node) { a.EscalateAfter = r.duration(path, n, leastExpires, mostExpires) }),
		note("reason_required", func(path string, n *yamldoc.Node) { a.Reasons = r.bool(path, n) }),
		note("fresh_login", func(path string, n *yamldoc.Node) { a.FreshLogin = r.bool(path, n) }),
		note("slack_level", func(path string, n *yamldoc.Node) { a.SlackLevel = r.number(path, n, 0, High) }),
	)
	if len(r.faults.list) > before {
		return nil
	}
	if a.By == "" {
		if a.By = ByCaller; len(a.Groups) > 0 {
			a.By = ByGroups
		}
	}
	if a.By == ByGroups {
		if len(a.Groups) == 0 {
			r.faults.add(n.At, path, "names no approver groups; add groups, or write by: caller.")
		}
		if at, ok := given["escalate_after"]; ok && len(a.EscalateTo) == 0 {
			r.faults.add(at, join(path, "escalate_after"), "requires escalate_to; add escalate_to, or remove it.")
		} else if ok && a.EscalateAfter >= a.Expires {
			r.faults.add(at, join(path, "escalate_after"), "must be shorter than expires (%s), after which the call expires; decrease it.", a.Expires)
		}
		return a
	}
	for _, name := range []string{"groups", "needed", "escalate_to", "escalate_after", "reason_required", "fresh_login", "slack_level"} {
		if at, ok := given[name]; ok {
			r.faults.add(at, join(path, name), "is for approvals by groups, but this approval is by the caller; remove it, or write by: groups.")
		}
	}
	return a
}

const (
	leastTTL = time.Second
	mostTTL  = day
)

// cache reads the lifetime and the scope of cached results.
func (r *policyReader) cache(path string, n *yamldoc.Node) *Cache {
	c, given := &Cache{}, false
	r.members(path, n,
		key{"ttl", func(path string, n *yamldoc.Node) { c.TTL, given = r.duration(path, n, leastTTL, mostTTL), true }},
		key{"scope", func(path string, n *yamldoc.Node) { c.Shared = r.choice(path, n, "principal", "shared") == "shared" }})
	if n.Kind == yamldoc.Map && !given {
		r.faults.add(n.At, path, "has no lifetime for results; add ttl, such as %s.", quote("60s"))
	}
	return c
}

// explain creates the reasons of a rule once, for all calls.
func (r *rule) explain(denial, reason string) {
	name := "Rule " + quote(r.name)
	var does string
	switch {
	case r.deny:
		does = " denies this call: " + sentence(denial)
	case r.level == Low:
		does = " allows this call to run at once."
	case r.level == High || r.level == 0 && r.sandbox != "":
		does = " runs this call in a container" + asks(r.approval, ", and ") + "."
	case r.level == Medium && r.approval == nil:
		does = " holds this call until it is approved."
	case r.approval != nil:
		does = " holds this call" + asks(r.approval, ": it ") + "."
	case r.durable:
		does = " makes this call durable."
	default:
		does = " caches results of this call."
	}
	r.won = []string{name + does}
	if reason != "" {
		r.won = append(r.won, sentence(reason))
	}
	r.twin = append([]string{"The name of the server or tool resembles a name in rule " + quote(r.name) + "."}, r.won...)
	if r.raises() {
		r.undecided = r.won
	}
}

func asks(a *Approval, before string) string {
	if a == nil {
		return ""
	}
	return before + "requires approval"
}

func sentence(text string) string {
	text = strings.TrimSpace(yamldoc.OneLine(text))
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}
