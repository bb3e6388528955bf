package quota

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// limits holds the limits of one subject. It is immutable.
type limits struct {
	rate     float64
	interval time.Duration // between two calls at that rate; 0 means no limit
	burst    int
	inFlight int
	queued   int
	batches  int
}

func (l *limits) none() bool { return l == nil || *l == limits{} }

// perCall reports whether the rate or the calls in flight are limited.
func (l *limits) perCall() bool { return l.interval > 0 || l.inFlight > 0 }

func newLimits(rate float64, burst, inFlight int) limits {
	l := limits{rate: rate, burst: burst, inFlight: inFlight}
	if rate > 0 {
		l.interval = max(time.Duration(float64(time.Second)/rate), 1)
		if burst == 0 {
			l.burst = max(1, int(math.Ceil(rate)))
		}
	}
	return l
}

// tighter combines the limits with those of a key: of each, the lower one applies. It returns nil if
// there are none.
func tighter(l *limits, own scope.Limits) *limits {
	if own.None() {
		return l
	}
	both := newLimits(own.Rate, own.Burst, own.InFlight)
	if l == nil {
		return &both
	}
	if both.interval == 0 || l.interval > both.interval {
		both.rate, both.interval, both.burst = l.rate, l.interval, l.burst
	}
	if both.inFlight == 0 || l.inFlight > 0 && l.inFlight < both.inFlight {
		both.inFlight = l.inFlight
	}
	both.queued, both.batches = l.queued, l.batches
	return &both
}

// rule is a compiled rule.
type rule struct {
	names, groups []string
	limits        limits
}

func principals(c *settings.Limits, inFlight int) (rules []rule) {
	for _, r := range c.Principals {
		l := newLimits(r.Rate, r.Burst, r.InFlight)
		l.queued, l.batches = r.Queued, r.Batches
		if l.inFlight == 0 {
			l.inFlight = inFlight
		}
		rules = append(rules, rule{r.Names, r.Groups, l})
	}
	if inFlight > 0 {
		rules = append(rules, rule{limits: limits{inFlight: inFlight}})
	}
	return rules
}

func servers(c *settings.Limits) (rules []rule) {
	for _, r := range c.Servers {
		rules = append(rules, rule{names: r.Servers, limits: newLimits(r.Rate, r.Burst, r.InFlight)})
	}
	return rules
}

// match returns the limits of the first rule that matches the principal, or nil.
func match(rules []rule, name string, groups []string) *limits {
	for i := range rules {
		r := &rules[i]
		if !anyOf(r.names, name) {
			continue
		}
		in := len(r.groups) == 0
		for _, g := range groups {
			in = in || anyOf(r.groups, g)
		}
		if !in {
			continue
		}
		if r.limits.none() {
			return nil
		}
		return &r.limits
	}
	return nil
}

func matchPrincipal(rules []rule, p *schema.Principal) *limits { return match(rules, p.Name, p.Groups) }

func anyOf(patterns []string, name string) bool {
	for _, p := range patterns {
		if matchPattern(p, name) {
			return true
		}
	}
	return len(patterns) == 0
}

// matchPattern matches with backtracking over the last star only: at most len(pattern) × len(name) steps.
// "?" matches one character.
func matchPattern(pattern, name string) bool {
	star, resume := -1, 0
	i, j := 0, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, resume = i, j
			i++
		case i < len(pattern) && pattern[i] == '?':
			_, size := utf8.DecodeRuneInString(name[j:])
			i++
			j += size
		case i < len(pattern) && pattern[i] == name[j]:
			i++
			j++
		case star >= 0:
			_, size := utf8.DecodeRuneInString(name[resume:])
			resume += size
			i, j = star+1, resume
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}
