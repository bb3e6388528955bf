package httpapi

import (
	"time"

	"github.com/callyard/callyard/internal/kit/limiters"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// refusalsBurst is the number of refused acts of one principal that are recorded at once.
	// After that, one is recorded per refusalsEvery.
	refusalsBurst = 60
	refusalsEvery = time.Second
	// refusersKept limits the size of the table.
	refusersKept = 10_000
)

// refusals limits the refused acts of each principal that are recorded. Any caller can cause
// refusals at any rate, and the audit record must remain readable. It is safe for concurrent use.
type refusals struct{ of *limiters.Table[string] } // by tenant and name

func newRefusals() refusals {
	return refusals{limiters.New[string](refusalsEvery, refusalsBurst, refusersKept)}
}

// record returns nil if a refused act of the principal must be recorded, else the error of
// KindQuota to answer with.
func (r refusals) record(who *schema.Principal) error {
	if r.of.Count(string(who.Tenant.OrDefault())+"\x00"+who.Name) == 0 {
		return nil
	}
	return schema.Errorf(schema.KindQuota, "Too many of your requests were refused. Wait before the next one.").RetryableAfter(time.Second)
}
