package risk

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/callyard/callyard/pkg/schema"
)

// Holder holds the policy in force, with those of tenants that tighten it, and replaces them
// as a whole. A call is judged by one version, whatever is put in force meanwhile. Use
// NewHolder; it is safe for concurrent use.
type Holder struct {
	current atomic.Pointer[policies]
}

// policies is what is in force together. It is never changed.
type policies struct {
	platform *Policy
	tenants  map[schema.TenantID]*Policy // by the stored id
	version  string
}

// NewHolder returns a Holder of p; nil stands for [Default].
func NewHolder(p *Policy) *Holder {
	if p == nil {
		p = Default()
	}
	h := &Holder{}
	h.Replace(p)
	return h
}

// With returns a Holder of another policy of the platform, with the policies of tenants that h
// has; h may be nil.
func (h *Holder) With(p *Policy) *Holder {
	other := NewHolder(p)
	if h != nil {
		other.ReplaceAll(p, h.current.Load().tenants)
	}
	return other
}

// Current returns the policy of the platform that is in force. Calls are judged by
// [Holder.Assess].
func (h *Holder) Current() *Policy { return h.current.Load().platform }

// Of returns the policies that calls of a tenant are judged by: that of the platform, and after
// it the tenant's own, nil where it has none.
func (h *Holder) Of(tenant schema.TenantID) [2]*Policy {
	all := h.current.Load()
	return [2]*Policy{all.platform, all.tenants[tenant.Stored()]}
}

// Replace puts p in force, and no policy of a tenant.
func (h *Holder) Replace(p *Policy) { h.ReplaceAll(p, nil) }

// Become puts in force what other has in force.
func (h *Holder) Become(other *Holder) { h.current.Store(other.current.Load()) }

// ReplaceAll puts p in force, together with the policies of tenants. Those can only tighten
// it: see [Holder.Assess].
func (h *Holder) ReplaceAll(p *Policy, tenants map[schema.TenantID]*Policy) {
	all := &policies{platform: p, tenants: make(map[schema.TenantID]*Policy, len(tenants)), version: p.version}
	for _, id := range slices.Sorted(maps.Keys(tenants)) {
		own := *tenants[id]
		own.tightens = true
		all.tenants[id.Stored()] = &own
		all.version += "\n" + string(id) + " " + own.version
	}
	if len(tenants) > 0 {
		all.version = schema.Digest([]byte(all.version))
	}
	h.current.Store(all)
}

// Version names what is in force: that of the policy or, with policies of tenants, a digest
// of all.
func (h *Holder) Version() string { return h.current.Load().version }

// Assess judges a call by the policy in force, and by that of the tenant of its principal
// where there is one: what is stricter counts. See [Policy.Assess].
func (h *Holder) Assess(in *Input) Assessment {
	a, _ := h.AssessKnown(in, Missing{})
	return a
}

// AssessKnown is Assess for a call of which something is missing. See [Policy.AssessKnown].
func (h *Holder) AssessKnown(in *Input, missing Missing) (a Assessment, undecided string) {
	all := h.current.Load()
	a, undecided = all.platform.AssessKnown(in, missing)
	if undecided != "" || len(all.tenants) == 0 || in == nil {
		return a, undecided
	}
	own := all.tenants[in.Principal.Tenant.Stored()]
	if own == nil {
		return a, ""
	}
	tighter, undecided := own.AssessKnown(in, missing)
	if undecided != "" {
		return Assessment{}, undecided
	}
	return tightened(a, tighter), ""
}

// ReadFile reads the policy at path. The error is *[Faults] where the file has faults.
func ReadFile(path string) (*Policy, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	return Parse(source, path)
}
