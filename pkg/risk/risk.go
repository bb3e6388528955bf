package risk

import (
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Levels of risk; see the contract of the levels in docs/reference/policy.md.
const (
	Low    = 1 // runs at once
	Medium = 2 // is held until somebody approves it
	High   = 3 // runs inside a container made for this use
)

// LevelName is the name of a level of risk, from [Low] to [High].
func LevelName(level int) string {
	switch level {
	case Low:
		return "low"
	case Medium:
		return "medium"
	}
	return "high"
}

// ByCaller and ByGroups are who may approve a held call.
const (
	ByCaller = "caller"
	ByGroups = "groups"
)

// SandboxContainer is the only sandbox that a policy can ask for. A server of high
// risk has that, or what its entry names instead.
const SandboxContainer = "container"

// DefaultExpires is how long a call is held where the policy says nothing.
const DefaultExpires = 10 * time.Minute

// Input is what there is to judge.
type Input struct {
	// Method is the MCP method; empty means tools/call. Other methods have no Tool, no
	// Definition, and the params object as Arguments.
	Method string
	// Server and Tool are the names as the catalog has them.
	Server string
	Tool   string
	// ServerRisk is the operator's riskLevel of the server: 0 for none, else 1 to
	// 3. Anything else counts as 3.
	ServerRisk int
	// TrustAnnotations says that the operator trusts this server's hints.
	TrustAnnotations bool
	// Definition is the tool's definition as the server sent it; nil where it is
	// not known, which counts as a tool without hints.
	Definition json.RawMessage
	// Arguments are the exact bytes of the arguments object; empty counts as {}.
	Arguments []byte
	// Principal is who asks.
	Principal schema.Principal
}

// Assessment is how a call is judged. What it points to belongs to the policy
// and must not be changed.
type Assessment struct {
	// Level is Low, Medium or High. Of a denied call it is what the server's
	// riskLevel and hints say.
	Level int
	// Deny says that the call must not run, whoever agrees.
	Deny bool
	// Reasons say in plain words why, the decisive one first. There is at least one.
	Reasons []string
	// Rule is the name of the rule that decided, "" where none did.
	Rule string
	// Approval says who must agree before the call runs; nil: nobody.
	Approval *Approval
	// Sandbox is SandboxContainer or "". Container says that a rule asks for one by
	// name, so that nothing weaker that the server's entry chose will do.
	Sandbox   string
	Container bool
	// Version names the policy: the digest of its source, or "default".
	Version string
	// Durable says that the policy wants the call in the ledger, even where it
	// need not be held.
	Durable bool
	// Cache says that the result may be kept and given to whoever asks the same;
	// nil: it may not. Only a call that runs at once, outside of a container, has it.
	Cache *Cache
	// ServerRisk and TrustAnnotations are those of the [Input].
	ServerRisk       int
	TrustAnnotations bool
}

// Cache says how long a result counts, and for whom.
type Cache struct {
	TTL time.Duration
	// Shared lets principals have each other's results.
	Shared bool
}

// Approval says who must agree, and how.
type Approval struct {
	// By is ByCaller, the two-step flow, or ByGroups.
	By string
	// Groups are whose members may agree, for ByGroups.
	Groups []string
	// Needed is how many different people must agree; at least 1.
	Needed int
	// Expires is how long the call is held. Silence is a no.
	Expires time.Duration
	// EscalateTo are the groups that are asked as well when nobody answers.
	EscalateTo []string
	// EscalateAfter is how long nobody has answered by then; 0: half the time for which
	// the call is held.
	EscalateAfter time.Duration `json:",omitempty"`
	// Reasons says that who decides must give a reason.
	Reasons bool
	// FreshLogin says that who decides must have signed in just now.
	FreshLogin bool
	// SlackLevel is the highest level that may be decided in Slack; 0: none, the
	// page only.
	SlackLevel int
}
