package config

import (
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Limits and defaults of a retry rule.
const (
	mostAttempts     = 10
	longestBackoff   = 10 * time.Minute
	retryAttempts    = 3
	retryBackoff     = 200 * time.Millisecond
	retryMostBackoff = 5 * time.Second
)

// retryOn are the default failures after which a rule repeats a call. An error that the tool or
// the server itself returned would mostly be the same the next time.
var retryOn = []schema.RetryKind{schema.RetryTimeout, schema.RetryRateLimited, schema.RetryUnavailable, schema.RetryUnknown}

// retryShape is a retry rule as written.
type retryShape struct {
	Attempts       *int           `yaml:"attempts"`
	Backoff        *time.Duration `yaml:"backoff"`
	MaxBackoff     *time.Duration `yaml:"maxBackoff"`
	AttemptTimeout *time.Duration `yaml:"attemptTimeout"`
	On             []string       `yaml:"on"`
}

// toolShape holds the settings of one tool in an entry.
type toolShape struct {
	Retry *retryShape `yaml:"retry"`
}

// retries reads the retry rules of a server and its tools. A rule that cannot apply to any call is
// a fault.
func (r *serverReader) retries(d *draft, e *ServerEntry) {
	if s := d.shape.Retry; s != nil {
		e.Retry = r.retry(d, "retry", join(d.path, "retry"), s)
		if e.Retry.Attempts > 1 && !e.maySafe() {
			r.fault(d, "retry", "no tool of the server is safe to repeat, so no call is repeated; list such tools in \"safeTools\", or set \"trustAnnotations\".")
		}
	}
	tools := join(d.path, "tools")
	for _, name := range slices.Sorted(maps.Keys(d.shape.Tools)) {
		s := d.shape.Tools[name].Retry
		if s == nil {
			continue
		}
		full := join(joinName(tools, name), "retry")
		rule := r.retry(d, "tools", full, s)
		if rule.Attempts > 1 && !e.TrustAnnotations && e.Type != TypeBuiltin && !e.asServer().SafeToRepeat(&schema.Tool{Name: name}) {
			r.faultBelow(d, "tools", full, "the tool is not marked as safe to repeat, so its calls are not repeated; add it to \"safeTools\", or set \"trustAnnotations\".")
		}
		if e.ToolRetry == nil {
			e.ToolRetry = map[string]*schema.Retry{}
		}
		e.ToolRetry[name] = rule
	}
}

// maySafe reports whether a tool of the server may be safe to repeat.
func (e *ServerEntry) maySafe() bool {
	return e.TrustAnnotations || len(e.SafeTools) > 0 || e.Type == TypeBuiltin
}

// asServer returns the fields that decide which tools are safe to repeat.
func (e *ServerEntry) asServer() *schema.Server {
	return &schema.Server{TrustAnnotations: e.TrustAnnotations, SafeTools: e.SafeTools}
}

// retry reads the rule at the full path, below a key of the draft.
func (r *serverReader) retry(d *draft, key, full string, s *retryShape) *schema.Retry {
	bad := func(sub, format string, args ...any) { r.faultBelow(d, key, join(full, sub), format, args...) }
	rule := &schema.Retry{Attempts: retryAttempts, Backoff: retryBackoff, MaxBackoff: retryMostBackoff, On: retryOn}
	if s.Attempts != nil {
		if rule.Attempts = *s.Attempts; rule.Attempts < 1 || rule.Attempts > mostAttempts {
			bad("attempts", "must be from 1 to %d, including the first attempt; 1 means no retries.", mostAttempts)
		}
	}
	if s.Backoff != nil {
		if rule.Backoff = *s.Backoff; rule.Backoff < time.Millisecond || rule.Backoff > longestBackoff {
			bad("backoff", "must be from \"1ms\" to \"10m\".")
		}
		rule.MaxBackoff = max(rule.MaxBackoff, rule.Backoff)
	}
	if s.MaxBackoff != nil {
		if rule.MaxBackoff = *s.MaxBackoff; rule.MaxBackoff < rule.Backoff || rule.MaxBackoff > longestBackoff {
			bad("maxBackoff", "must be from backoff, %s, to \"10m\".", formatDuration(rule.Backoff))
		}
	}
	if s.AttemptTimeout != nil {
		if rule.AttemptTimeout = *s.AttemptTimeout; rule.AttemptTimeout < time.Millisecond || rule.AttemptTimeout > 7*day {
			bad("attemptTimeout", "must be from \"1ms\" to \"7d\".")
		}
	}
	if s.On == nil {
		return rule
	}
	rule.On = nil
	known := schema.RetryKinds()
	for _, word := range s.On {
		kind := schema.RetryKind(word)
		switch {
		case !slices.Contains(known, kind):
			bad("on", "%s is not a known kind of failure; write %s.", quote(shorten(word)), oneOf(known))
		case !slices.Contains(rule.On, kind):
			rule.On = append(rule.On, kind)
		}
	}
	if len(s.On) == 0 {
		bad("on", "is empty, so nothing is repeated; name failures, or remove it for the default.")
	}
	return rule
}
