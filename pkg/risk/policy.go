package risk

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
	"github.com/callyard/callyard/pkg/schema"
)

// annotationMode is how much the hints of servers count.
type annotationMode string

const (
	trustHints  annotationMode = "trust"  // hints of every server may lower the risk
	raiseHints  annotationMode = "raise"  // only hints of trusted servers lower; others raise
	ignoreHints annotationMode = "ignore" // hints do not count
)

// defaultVersion is the version of the policy that nobody wrote.
const defaultVersion = "default"

// Policy is a compiled policy. It does not change and is safe for concurrent use.
type Policy struct {
	version     string
	source      []byte // what it was read from; nil for the default
	annotations annotationMode
	// approval is what medium risk asks for where no rule says otherwise.
	approval   *Approval
	approvalAt yamldoc.Position // where the file says it; line 0 where it does not
	rules      []rule
	// tightens says that it is a tenant's, which adds to the policy of the platform: what no
	// rule of it concerns is left to that.
	tightens bool
}

// rule is one rule of a policy; the first that matches wins.
type rule struct {
	name    string
	at      yamldoc.Position
	servers []glob // empty: every server
	tools   []glob
	// methods are those that match.method names; without, the rule is about calls of
	// tools, and where it is general about every other method as well.
	methods []string
	general bool // it names no tool, and its condition no arguments
	when    *condition
	// looksAtArgs and looksAtCaller say that the condition may name arguments, or the principal.
	looksAtArgs, looksAtCaller bool

	deny     bool
	level    int // 0: what would be without the rule, or more
	approval *Approval
	sandbox  string
	durable  bool
	cache    *Cache

	// won, undecided and twin are the reasons of an assessment in which the rule
	// won, in which its condition failed, and in which it matched a lookalike.
	// They are made once.
	won, undecided, twin []string
}

// Default returns the policy that is in force without a policy file: no rules,
// hints count, and the caller may confirm calls of medium risk.
func Default() *Policy {
	return &Policy{version: defaultVersion, annotations: trustHints, approval: defaultApproval()}
}

func defaultApproval() *Approval {
	return &Approval{By: ByCaller, Needed: 1, Expires: DefaultExpires}
}

// Version names the policy: "sha256:…" of its source, or "default".
func (p *Policy) Version() string { return p.version }

// Source is the text that the policy was read from; nil for the default policy. It is not to be
// changed.
func (p *Policy) Source() []byte { return p.source }

// Rules returns the names of the rules in their order.
func (p *Policy) Rules() []string {
	names := make([]string, len(p.rules))
	for i := range p.rules {
		names[i] = p.rules[i].name
	}
	return names
}

// concerns says whether the rule is about requests of the method.
func (r *rule) concerns(method string) bool {
	if len(r.methods) > 0 {
		return slices.Contains(r.methods, method)
	}
	return method == schema.MethodCallTool || r.general
}

// concernsAll says whether the rule is about every method that another is about.
func (r *rule) concernsAll(other *rule) bool {
	for _, m := range methods {
		if other.concerns(m) && !r.concerns(m) {
			return false
		}
	}
	return true
}

// isGeneral says whether the rule is about whole servers.
func (r *rule) isGeneral(condition string) bool {
	anyTool := len(r.tools) == 0 || slices.ContainsFunc(r.tools, func(g glob) bool { return g.any })
	return anyTool && !strings.Contains(condition, "args")
}

// methods are those that a policy decides about.
var methods = []string{schema.MethodCallTool, schema.MethodReadResource, schema.MethodGetPrompt, schema.MethodComplete}

// matches says whether the rule names this tool, whatever its condition says.
func (r *rule) matches(in *Input) bool {
	return matchesAny(r.servers, in.Server) && matchesAny(r.tools, in.Tool)
}

// resembles says whether the rule names something that this tool looks like.
func (r *rule) resembles(in *Input) bool {
	return resemblesAny(r.servers, in.Server) && resemblesAny(r.tools, in.Tool)
}

// raises says whether the rule can make a call harder to run. Only such rules
// catch lookalikes: a name must be exact to be let through.
func (r *rule) raises() bool {
	return r.deny || r.level > Low || r.approval != nil || r.sandbox != ""
}
