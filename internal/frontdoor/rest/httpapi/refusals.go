package httpapi

import (
	"time"

	"github.com/callyard/callyard/internal/kit/limiters"
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
type refusals struct{ of *limiters.Table[string] } // by tenant and name

func newRefusals() refusals {
	return refusals{limiters.New[string](refusalsEvery, refusalsBurst, refusersKept)}
}

// record returns nil where a refused act of the principal is to be recorded, else the error
// of KindQuota to answer with.
func (r refusals) record(who *schema.Principal) error {
	if r.of.Count(string(who.Tenant.OrDefault())+"\x00"+who.Name) == 0 {
		return nil
	}
	return schema.Errorf(schema.KindQuota, "Too many of your requests were refused. Wait before the next one.").RetryableAfter(time.Second)
}
