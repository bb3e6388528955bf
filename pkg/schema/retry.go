package schema

import (
	"path"
	"slices"
	"time"
)

// RetryKind is a kind of failure after which a [Retry] repeats a call. Kinds that also exist as
// a [Kind] have the same name.
type RetryKind string

// The kinds of failure of a [Retry]. A failure has at most one kind.
const (
	// RetryTimeout: the tool did not answer within the timeout of the attempt, or its service
	// answered with HTTP 408 or 504.
	RetryTimeout RetryKind = "timeout"
	// RetryRateLimited: the server or its service answered with HTTP 429.
	RetryRateLimited RetryKind = "rate-limited"
	// RetryUnavailable: the call did not start ([KindUnavailable], [KindServerFailed]), or
	// its service answered with HTTP 502 or 503.
	RetryUnavailable RetryKind = "unavailable"
	// RetryUnknown: the call was sent and no answer was received before its timeout
	// ([KindOutcomeUnknown]).
	RetryUnknown RetryKind = "outcome-unknown"
	// RetryProtocol: the server answered with a JSON-RPC error ([KindProtocol]).
	RetryProtocol RetryKind = "tool-protocol-error"
	// RetryToolError: the tool answered with isError, and no HTTP status gives a more specific
	// kind.
	RetryToolError RetryKind = "tool-error"
)

// RetryKinds returns all kinds of failure that a [Retry] can cover.
func RetryKinds() []RetryKind {
	return []RetryKind{RetryTimeout, RetryRateLimited, RetryUnavailable, RetryUnknown, RetryProtocol, RetryToolError}
}

// Retry is a retry policy: the number of attempts, the delays, and the failures that are
// retried. It applies only to calls of tools that are safe to repeat.
type Retry struct {
	// Attempts is the maximum number of attempts, including the first. A value below 2 disables
	// retries.
	Attempts int `json:"attempts"`
	// Backoff is the delay after the first failure. It doubles with each further failure, up to
	// MaxBackoff, and is shortened by a random amount.
	Backoff    time.Duration `json:"backoff_ns"`
	MaxBackoff time.Duration `json:"max_backoff_ns"`
	// AttemptTimeout limits each attempt. Zero gives each attempt the remaining time of the
	// call.
	AttemptTimeout time.Duration `json:"attempt_timeout_ns,omitempty"`
	On             []RetryKind   `json:"on"`
}

// Covers reports whether a call is retried after a failure of kind k.
func (r *Retry) Covers(k RetryKind) bool { return k != "" && slices.Contains(r.On, k) }

// SafeToRepeat reports whether calls of the tool are safe to repeat, because the operator
// marked the tool or because the annotations of a trusted server declare it.
func (s *Server) SafeToRepeat(t *Tool) bool {
	if s.TrustAnnotations && (t.ReadOnly || t.Idempotent) {
		return true
	}
	return slices.ContainsFunc(s.SafeTools, func(glob string) bool {
		ok, err := path.Match(glob, t.Name)
		return err == nil && ok
	})
}

// RetryOf returns the retry policy for calls of a tool, or nil if there is none. It does not
// check whether the tool is safe to repeat.
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
