// Package waits limits the number of waiting requests at a front door: long polls and event
// streams, over REST and MCP. Each of them keeps a connection, its buffers and two stacks, 25 KB in
// all, for as long as its client likes. Without a limit, one caller could use all the memory of the
// process.
//
// Running calls are not counted here: the router limits them.
package waits

import (
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	// All is the maximum number of waiting requests at one front door, and Each that of one principal.
	// The principals of a tenant other than the default one have at most 8,750 together, the middle of
	// both. A fleet that needs more uses a batch, whose end is a single wait.
	All  = 10_000
	Each = 7_500

	// again is the time after which a refused request should be retried.
	again = time.Second
)

// Limit counts the waiting requests. It is safe for concurrent use.
type Limit struct {
	all, tenant, each int

	mu      sync.Mutex
	total   int
	of      map[string]int          // by principal; no zero entries
	tenants map[schema.TenantID]int // without the default one; no zero entries
}

// New returns a Limit of all requests in total, of each requests per principal, and of their mean per
// tenant.
func New(all, each int) *Limit {
	return &Limit{all: all, tenant: (all + each) / 2, each: each, of: make(map[string]int), tenants: make(map[schema.TenantID]int)}
}

// Take counts a request of the principal until done is called, which must happen exactly once. Errors,
// with a retry time: KindQuota if the principal or its tenant has too many waiting requests,
// KindUnavailable if all principals together have.
func (l *Limit) Take(who *schema.Principal) (done func(), err error) {
	principal, tenant := who.Name, who.Tenant.Stored()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.of[principal] >= l.each:
		return nil, schema.Errorf(schema.KindQuota, "%d of your requests wait at this front door already. Wait for fewer calls at a time, or send them as one batch.", l.each).RetryableAfter(again)
	case tenant != "" && l.tenants[tenant] >= l.tenant:
		return nil, schema.Errorf(schema.KindQuota, "%d requests of your tenant wait at this front door already. Wait for fewer calls at a time, or send them as one batch.", l.tenant).RetryableAfter(again)
	case l.total >= l.all:
		return nil, schema.Errorf(schema.KindUnavailable, "%d requests wait at this front door already. Send the request again later, or to another front door.", l.all).RetryableAfter(again)
	}
	l.total++
	l.of[principal]++
	if tenant != "" {
		l.tenants[tenant]++
	}
	return func() { l.give(principal, tenant) }, nil
}

func (l *Limit) give(principal string, tenant schema.TenantID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.of[principal]--; l.of[principal] == 0 {
		delete(l.of, principal)
	}
	if tenant == "" {
		return
	}
	if l.tenants[tenant]--; l.tenants[tenant] == 0 {
		delete(l.tenants, tenant)
	}
}
