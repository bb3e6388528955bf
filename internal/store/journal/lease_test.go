package journal

import (
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// A lease runs out while its owner lives when NATS was away for longer than it lasts.
func TestExpiredLeaseIsRenewedUnlessAnotherOwnerHeldIt(t *testing.T) {
	s := stores(t, 1, Options{Lease: time.Hour})[0] // renewed by hand
	ctx := t.Context()
	m := &Manifest{Kind: Lane, Principal: schema.Principal{Name: "ann"}, Expires: time.Now().Add(time.Hour)}
	if err := s.Create(ctx, m); err != nil {
		t.Fatal(err)
	}
	o, err := s.Claim(ctx, schema.DefaultTenant, m.ID, "fd")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	runOut := func() {
		t.Helper()
		_, revision, err := s.leases.of(ctx, m.ID)
		if err != nil || revision == 0 {
			t.Fatalf("no lease, %v", err)
		}
		if err := s.leases.drop(ctx, m.ID, revision); err != nil {
			t.Fatal(err)
		}
	}
	runOut()
	o.until.Store(0)
	if o.Held() {
		t.Error("it is held although it ran out")
	}
	if err := o.renewOnce(); err != nil || !o.Held() || o.doubtful {
		t.Errorf("held %t, in doubt %t, %v", o.Held(), o.doubtful, err)
	}
	// A renewal whose reply was lost is found.
	revision, err := s.leases.put(ctx, m.ID, o.record, o.revision, s.lease)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.renewOnce(); err != nil || o.revision <= revision {
		t.Errorf("revision %d after %d, %v", o.revision, revision, err)
	}
	// Somebody had the journal meanwhile, and died too.
	runOut()
	_, err = s.Change(ctx, schema.DefaultTenant, m.ID, func(m *Manifest) error { m.Epoch++; m.Owner = "fd-2"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := o.renewOnce(); err == nil {
		t.Error("the journal of a later epoch was renewed")
	}
	if owner, err := s.OwnerOf(ctx, m.ID); err != nil || owner != "" {
		t.Errorf("the loser left a lease: %q, %v", owner, err)
	}
}
