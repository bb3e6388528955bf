package approval

import (
	"sync"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
)

// Rules caches parsed approval rules, because most pending calls have the same one. Cached rules must
// not be modified. It is safe for concurrent use; the zero value is empty.
type Rules struct {
	mu   sync.RWMutex
	read map[string]*risk.Approval // by JSON text
}

// maxKeptRules limits the number of cached rules, maxKeptRule the size of one.
const (
	maxKeptRules = 1000
	maxKeptRule  = 4 << 10
)

// Of is [Rule] with the cache.
func (r *Rules) Of(a *ledger.Approval) (*risk.Approval, error) {
	r.mu.RLock()
	rule := r.read[string(a.Rule)]
	r.mu.RUnlock()
	if rule != nil {
		return rule, nil
	}
	rule, err := Rule(a)
	if err != nil || len(a.Rule) > maxKeptRule {
		return rule, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil || len(r.read) >= maxKeptRules {
		r.read = make(map[string]*risk.Approval)
	}
	r.read[string(a.Rule)] = rule
	return rule, nil
}
