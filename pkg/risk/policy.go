package risk

import (
	"slices"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
	"github.com/callyard/callyard/pkg/schema"
)

// annotationMode is the degree to which hints of servers affect the risk.
type annotationMode string

const (
	trustHints  annotationMode = "trust"  // hints of every server may lower the risk
	raiseHints  annotationMode = "raise"  // only hints of trusted servers lower the risk; other hints raise it
	ignoreHints annotationMode = "ignore" // hints are ignored
)

// defaultVersion is the version of the built-in policy.
const defaultVersion = "default"

// Policy is a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	version     string
	source      []byte // the file's text; nil for the default
	annotations annotationMode
	// approval applies to medium risk unless a rule has its own.
	approval   *Approval
	approvalAt yamldoc.Position // position in the file; line 0 if the file has none
	rules      []rule
	// tightens means that this is a tenant's policy, which adds to the platform's policy. The
	// platform's policy decides calls that match none of its rules.
	tightens bool
}

// rule is one rule of a policy; the first that matches wins.
type rule struct {
	name    string
	at      yamldoc.Position
	servers []glob // if empty, every server
	tools   []glob
	// methods holds the methods of match.method. If empty, the rule applies to tool calls and,
	// if it is general, to all other methods.
	methods []string
	general bool // no tool in the match, and no arguments in the condition
	when    *condition
	// looksAtArgs and looksAtCaller mean that the condition may use the arguments or the
	// principal.
	looksAtArgs, looksAtCaller bool

	deny     bool
	level    int // 0 means at least the level without the rule
	approval *Approval
	sandbox  string
	durable  bool
	cache    *Cache

	// won, undecided and twin are the reasons of an assessment in which the rule applied, in
	// which its condition failed, and in which it matched a lookalike. They are created once.
	won, undecided, twin []string
}

// Default returns the effective policy if there is no policy file: it has no rules, trusts
// hints, and lets the caller confirm calls of medium risk.
func Default() *Policy {
	return &Policy{version: defaultVersion, annotations: trustHints, approval: defaultApproval()}
}

func defaultApproval() *Approval {
	return &Approval{By: ByCaller, Needed: 1, Expires: DefaultExpires}
}

// Version returns "sha256:…" of the policy's source, or "default".
func (p *Policy) Version() string { return p.version }

// Source returns the source of the policy, or nil for the default policy. Do not change it.
func (p *Policy) Source() []byte { return p.source }

// Rules returns the names of the rules in their order.
func (p *Policy) Rules() []string {
	names := make([]string, len(p.rules))
	for i := range p.rules {
		names[i] = p.rules[i].name
	}
	return names
}

// concerns reports whether the rule applies to requests of the method.
func (r *rule) concerns(method string) bool {
	if len(r.methods) > 0 {
		return slices.Contains(r.methods, method)
	}
	return method == schema.MethodCallTool || r.general
}

// concernsAll reports whether the rule applies to every method that other applies to.
func (r *rule) concernsAll(other *rule) bool {
	for _, m := range methods {
		if other.concerns(m) && !r.concerns(m) {
			return false
		}
	}
	return true
}

// methods are the methods that a policy can decide on.
var methods = []string{schema.MethodCallTool, schema.MethodReadResource, schema.MethodGetPrompt, schema.MethodComplete}

// matches reports whether the rule matches the tool by name, regardless of its condition.
func (r *rule) matches(in *Input) bool {
	return matchesAny(r.servers, in.Server) && matchesAny(r.tools, in.Tool)
}

// resembles reports whether the tool looks like one that the rule names.
func (r *rule) resembles(in *Input) bool {
	return resemblesAny(r.servers, in.Server) && resemblesAny(r.tools, in.Tool)
}

// raises reports whether the rule can make a call harder to run. Only such rules match
// lookalikes: to allow a call, the name must match exactly.
func (r *rule) raises() bool {
	return r.deny || r.level > Low || r.approval != nil || r.sandbox != ""
}
