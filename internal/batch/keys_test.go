package batch

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// TestAKeyStoredWithoutTenantCounts uses an entry as version 0.1 stored it.
func TestAKeyStoredWithoutTenantCounts(t *testing.T) {
	o, _, _, _ := working(t)
	ctx, red := t.Context(), schema.Principal{Name: "ann", Tenant: "red"}
	m := &journal.Manifest{Kind: journal.Batch, Principal: red, Expires: time.Now().Add(time.Hour)}
	if err := o.Store.Create(ctx, m); err != nil {
		t.Fatal(err)
	}
	former := journal.KeyHash(schema.PrincipalID{Name: red.Name}, "nightly")
	if _, first, err := o.Store.Remember(ctx, former, journal.Entry{Journal: m.ID}, time.Hour); err != nil || !first {
		t.Fatal(first, err)
	}
	if kept, err := o.recall(ctx, &red, "nightly"); err != nil || kept.Journal != m.ID {
		t.Errorf("the own key: %+v, %v", kept, err)
	}
	for _, other := range []schema.Principal{{Name: "ann", Tenant: "blue"}, {Name: "bob", Tenant: "red"}} {
		if kept, err := o.recall(ctx, &other, "nightly"); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%+v has the key of somebody else: %+v, %v", other, kept, err)
		}
	}
}
