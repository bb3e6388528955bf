package risk

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/callyard/callyard/pkg/schema"
)

// Holder holds the effective policy and the policies of tenants that tighten it, and replaces
// them atomically. A call is assessed by one version, even if a new one becomes effective in
// the meantime. Use NewHolder. Holder is safe for concurrent use.
type Holder struct {
	current atomic.Pointer[policies]
}

// policies are the policies that are effective together. It is immutable.
type policies struct {
	platform *Policy
	tenants  map[schema.TenantID]*Policy // key: [schema.TenantID.Stored]
	version  string
}

// NewHolder returns a Holder of p. If p is nil, it uses [Default].
func NewHolder(p *Policy) *Holder {
	if p == nil {
		p = Default()
	}
	h := &Holder{}
	h.Replace(p)
	return h
}

// With returns a Holder with p as the platform's policy and with the tenant policies of h. h may
// be nil.
func (h *Holder) With(p *Policy) *Holder {
	other := NewHolder(p)
	if h != nil {
		other.ReplaceAll(p, h.current.Load().tenants)
	}
	return other
}

// Current returns the effective policy of the platform. To assess calls, use [Holder.Assess].
func (h *Holder) Current() *Policy { return h.current.Load().platform }

// Of returns the policies that apply to the calls of a tenant: the platform's, followed by the
// tenant's, which is nil if it has none.
func (h *Holder) Of(tenant schema.TenantID) [2]*Policy {
	all := h.current.Load()
	return [2]*Policy{all.platform, all.tenants[tenant.Stored()]}
}

// Replace makes p effective and removes the policies of tenants.
func (h *Holder) Replace(p *Policy) { h.ReplaceAll(p, nil) }

// Become makes the policies of other effective.
func (h *Holder) Become(other *Holder) { h.current.Store(other.current.Load()) }

// ReplaceAll makes p effective, together with the policies of tenants, which can only tighten
// it; see [Holder.Assess].
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

// Version returns the version of the policy or, if there are policies of tenants, a digest of
// all versions.
func (h *Holder) Version() string { return h.current.Load().version }

// Assess assesses a call by the effective policy and by the policy of the principal's tenant, if
// there is one. The stricter assessment applies. See [Policy.Assess].
func (h *Holder) Assess(in *Input) Assessment {
	a, _ := h.AssessKnown(in, Missing{})
	return a
}

// AssessKnown is Assess for a call with missing parts. See [Policy.AssessKnown].
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

// ReadFile reads the policy at path. If the content is invalid, the error is *[Faults].
func ReadFile(path string) (*Policy, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	return Parse(source, path)
}
