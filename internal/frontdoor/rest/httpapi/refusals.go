package httpapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	// refusalsBurst refused acts of one principal are recorded at once, then one each
	// refusalsEvery.
	refusalsBurst = 60
	refusalsEvery = time.Second
	// refusersKept bounds the table.
	refusersKept = 10_000
)

// refusals bounds how many refused acts of each principal are recorded: any caller can be
// refused as often as it likes, and the audit record is to stay readable. It is safe for
// concurrent use.
type refusals struct {
	mu  sync.Mutex
	who map[string]*rate.Limiter // by name and tenant
}

// record returns nil where a refused act of the principal is to be recorded, else the error
// of KindQuota to answer with.
func (r *refusals) record(who *schema.Principal) error {
	now := time.Now()
	key := string(who.Tenant.OrDefault()) + "\x00" + who.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.who[key]
	if l == nil {
		if len(r.who) >= refusersKept {
			r.dropLocked(now)
		}
		l = rate.NewLimiter(rate.Every(refusalsEvery), refusalsBurst)
		r.who[key] = l
	}
	if l.AllowN(now, 1) {
		return nil
	}
	e := schema.Errorf(schema.KindQuota, "Too many of your requests were refused. Wait before the next one.")
	e.Retryable, e.RetryAfter = true, time.Second
	return e
}

// dropLocked makes room: principals whose limit has filled up again are as good as new.
func (r *refusals) dropLocked(now time.Time) {
	for key, l := range r.who {
		if l.TokensAt(now) >= refusalsBurst {
			delete(r.who, key)
		}
	}
	if len(r.who) > refusersKept/2 {
		clear(r.who)
	}
}
