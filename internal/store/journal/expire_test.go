package journal_test

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

func TestLeaseExpiresOnlyAfterItsOwnerDies(t *testing.T) {
	const lease = 3 * time.Second
	s, ctx := newPlace(t, embedded.Options{}).connect(t, journal.Options{Lease: lease}), t.Context()
	tick := time.NewTicker(lease / 10)
	defer tick.Stop()
	var id schema.BatchID
	var o *journal.Owned
	// A busy machine may hold up the one who renews it for longer than a lease.
	polltest.Until(t, "it outlasts two leases", func() bool {
		id, _ = begin(t, s)
		o = claim(t, s, id)
		for range 20 {
			<-tick.C
			if owner, err := s.OwnerOf(ctx, id); err != nil || owner == "" || !o.Held() {
				t.Logf("owner %q, held %t, %v", owner, o.Held(), err)
				return false
			}
		}
		return true
	})
	o.Close()
	for {
		<-tick.C
		next, err := s.Claim(ctx, schema.DefaultTenant, id, "fd-2")
		if err == nil {
			next.Close()
			break
		}
		kind(t, err, schema.KindConflict)
	}
	if o.Held() {
		t.Error("the dead owner still holds it")
	}
}
