package schema

import (
	"path"
	"slices"
	"time"
)

// RetryKind names a kind of failure after which a [Retry] repeats a call. The names are
// those of [Kind] where there is one.
type RetryKind string

// The kinds of failure of a [Retry]. Each failure is of one kind at most.
const (
	// RetryTimeout: the tool did not answer in the time of the attempt, or its service
	// answered with HTTP 408 or 504.
	RetryTimeout RetryKind = "timeout"
	// RetryRateLimited: the server or its service answered with HTTP 429.
	RetryRateLimited RetryKind = "rate-limited"
	// RetryUnavailable: the call did not start ([KindUnavailable], [KindServerFailed]), or
	// its service answered with HTTP 502 or 503.
	RetryUnavailable RetryKind = "unavailable"
	// RetryUnknown: the call left and no answer came, before its time had ended
	// ([KindOutcomeUnknown]).
	RetryUnknown RetryKind = "outcome-unknown"
	// RetryProtocol: the server answered with a JSON-RPC error ([KindProtocol]).
	RetryProtocol RetryKind = "tool-protocol-error"
	// RetryToolError: the tool answered with isError, and no HTTP status says more.
	RetryToolError RetryKind = "tool-error"
)

// RetryKinds returns all kinds of failure of a [Retry].
func RetryKinds() []RetryKind {
	return []RetryKind{RetryTimeout, RetryRateLimited, RetryUnavailable, RetryUnknown, RetryProtocol, RetryToolError}
}

// Retry says how often, when, and after which failures a call is repeated whose tool is safe
// to repeat. It says nothing about other calls.
type Retry struct {
	// Attempts is the most that are made, the first one included. Below 2 the rule is off.
	Attempts int `json:"attempts"`
	// Backoff is the pause after the first failure. It doubles with each, up to MaxBackoff,
	// and a random part is taken off.
	Backoff    time.Duration `json:"backoff_ns"`
	MaxBackoff time.Duration `json:"max_backoff_ns"`
	// AttemptTimeout is the most that one attempt may take; zero leaves each the rest of the
	// call's time.
	AttemptTimeout time.Duration `json:"attempt_timeout_ns,omitempty"`
	On             []RetryKind   `json:"on"`
}

// Covers says that the call is repeated after a failure of the kind.
func (r *Retry) Covers(k RetryKind) bool { return k != "" && slices.Contains(r.On, k) }

// SafeToRepeat says that calls of the tool may be repeated: the operator marked it, or trusts
// the server's hints and they say so.
func (s *Server) SafeToRepeat(t *Tool) bool {
	if s.TrustAnnotations && (t.ReadOnly || t.Idempotent) {
		return true
	}
	return slices.ContainsFunc(s.SafeTools, func(glob string) bool {
		ok, err := path.Match(glob, t.Name)
		return err == nil && ok
	})
}

// RetryOf returns the rule for the calls of a tool, whether it is safe to repeat or not; nil
// for none.
func (s *Server) RetryOf(tool string) *Retry {
	rule := s.Retry
	if own := s.ToolRetry[tool]; own != nil {
		rule = own
	}
	if rule == nil || rule.Attempts < 2 {
		return nil
	}
	return rule
}
