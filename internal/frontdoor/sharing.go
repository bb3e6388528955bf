package frontdoor

import (
	"fmt"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/cache"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/pkg/schema"
)

// sharing is the state that front doors share in addition to NATS: limits and cached results. Both
// are in Redis if it is configured.
type sharing struct {
	quota *quota.Quota
	cache *cache.Cache
	redis interface{ Close() error } // nil if there is none
}

// openSharing opens the limits and the cache of this front door. The cache is used only if a
// policy requires it, but a reloaded policy may require it at any time.
func (d *FrontDoor) openSharing() (*sharing, error) {
	limits := quota.Options{Rules: d.o.Limits, InFlight: d.o.Config.PrincipalInFlight, Door: d.id, Own: d.ownLimits, Tenants: d.o.Tenants.Limits(), Routers: d.catalog.Routers, Held: func(p *schema.Principal) int { return batch.HeldSingly(d.stores.approvals.Ledger, p) }, Log: d.o.Log}
	results := cache.Options{Config: d.o.Cache, DataKeys: d.o.DataKeys, Retention: d.o.Tenants.Retentions(), Log: d.o.Log}
	s := &sharing{}
	if d.o.Redis != nil {
		client, err := d.o.Redis.Client()
		if err != nil {
			return nil, fmt.Errorf("opening Redis for limits and results: %w", err)
		}
		s.redis, limits.Redis, results.Redis = client, client, client
	}
	s.quota = quota.Open(limits)
	if d.o.Policy != nil {
		s.cache = cache.Open(results)
	}
	return s, nil
}

// close returns what is leased. No caller may use the quota or the cache afterwards.
func (s *sharing) close() {
	s.cache.Close()
	s.quota.Close()
	if s.redis != nil {
		_ = s.redis.Close() // fails only if it was closed before
	}
}
