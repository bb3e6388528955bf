package risk

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// The levels of risk. docs/reference/policy.md specifies them.
const (
	Low    = 1 // runs at once
	Medium = 2 // is held until a person approves it
	High   = 3 // runs inside a container created for it
)

// LevelName returns the name of a risk level from [Low] to [High].
func LevelName(level int) string {
	switch level {
	case Low:
		return "low"
	case Medium:
		return "medium"
	}
	return "high"
}

// The values of [Approval.By].
const (
	ByCaller = "caller"
	ByGroups = "groups"
)

// SandboxContainer is the only sandbox that a policy can require. A server of high risk runs in
// a container or in the sandbox that its entry selects instead.
const SandboxContainer = "container"

// DefaultExpires is the time for which a call is held unless the policy sets another.
const DefaultExpires = 10 * time.Minute

// Input is the input of an assessment.
type Input struct {
	// Method is the MCP method. Empty means tools/call. For other methods, Tool and
	// Definition are empty, and Arguments is the params object.
	Method string
	// Server and Tool are the names in the catalog.
	Server string
	Tool   string
	// ServerRisk is the server's riskLevel as the operator set it: 1 to 3, or 0 for none. Any
	// other value counts as 3.
	ServerRisk int
	// TrustAnnotations means that the operator trusts this server's hints.
	TrustAnnotations bool
	// Definition is the tool's definition as the server sent it. Nil means unknown, and the
	// tool is treated as one without hints.
	Definition json.RawMessage
	// Arguments are the exact bytes of the arguments object. Empty means {}.
	Arguments []byte
	// Principal is the caller.
	Principal schema.Principal
}

// Assessment is the result of assessing a call. Its pointers refer to data of the policy, which
// must not be changed.
type Assessment struct {
	// Level is Low, Medium or High. For a denied call it is derived from the server's
	// riskLevel and hints.
	Level int
	// Deny means that the call must not run, even with approvals.
	Deny bool
	// Reasons explain the assessment in plain language, the decisive reason first. There is at
	// least one.
	Reasons []string
	// Rule is the name of the rule that decided, or "".
	Rule string
	// Approval is the approval that the call requires before it runs. Nil means none.
	Approval *Approval
	// Sandbox is SandboxContainer or "". Container means that a rule requires a container by
	// name, so that a weaker sandbox in the server's entry is not sufficient.
	Sandbox   string
	Container bool
	// Version is the digest of the policy's source, or "default".
	Version string
	// Durable means that the policy requires the call to be recorded in the ledger, even if it
	// is not held.
	Durable bool
	// Cache permits caching the result for identical calls. Nil means no caching. It is set
	// only for a call that runs at once and outside a container.
	Cache *Cache
	// ServerRisk and TrustAnnotations are copied from the [Input].
	ServerRisk       int
	TrustAnnotations bool
}

// JoinReasons returns the reasons of an assessment as one text: a space follows a sentence, and a
// semicolon separates anything else from the next reason.
func JoinReasons(reasons []string) string {
	var b strings.Builder
	for i, reason := range reasons {
		switch {
		case i == 0:
		case strings.HasSuffix(reasons[i-1], "."):
			b.WriteByte(' ')
		default:
			b.WriteString("; ")
		}
		b.WriteString(reason)
	}
	return b.String()
}

// Cache defines how long and for which principals a result is cached.
type Cache struct {
	TTL time.Duration
	// Shared lets principals share results.
	Shared bool
}

// Approval is an approval rule: the permitted approvers and the conditions.
type Approval struct {
	// By is ByCaller (the two-step flow) or ByGroups.
	By string
	// Groups are the groups whose members may approve, for ByGroups.
	Groups []string
	// Needed is the number of different people who must approve, at least 1.
	Needed int
	// Expires is the time for which the call is held. Without a decision, it does not run.
	Expires time.Duration
	// EscalateTo are the groups that are asked in addition if there is no answer.
	EscalateTo []string
	// EscalateAfter is the time without a decision after which EscalateTo is asked. 0 means
	// half the time for which the call is held.
	EscalateAfter time.Duration `json:",omitempty"`
	// Reasons means that approvers must give a reason.
	Reasons bool
	// FreshLogin means that approvers must have signed in just before.
	FreshLogin bool
	// SlackLevel is the highest level that may be decided in Slack. 0 means that decisions are
	// made only on the page.
	SlackLevel int
}
